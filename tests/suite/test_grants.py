"""`install --grants ROLE --for sweep|operate|read`: what it prints is enough for what the name says, and all of it is needed."""
import re

from harness import *

CONTRACT = """
schedulers: { default: { every: 1m, exclusive: true } }
policies:
  job: { table: job, expires: at_ms, limits: { rows: 2 }, with: [step(job_id)], detach: [note(job_id)] }
"""
TABLES = "job", "step", "note"
READING = (["check"], ["plan"], ["explain", "job", "1"], ["status"], ["history"])
COMMANDS = {"sweep": (["check"], ["plan"], ["sweep", "--now", NOW]),
            "operate": (["pause", "job"], ["resume", "job"], ["ack", "job"], *READING),
            "read": READING}


@every_server
class Grants(Case):
    def setUp(self):
        super().setUp()
        self.given("""create table job (id integer primary key, at_ms bigint);
            create table step (id integer primary key, job_id integer references job (id));
            create table note (id integer primary key, job_id integer references job (id));
            create index step_job on step (job_id); create index note_job on note (job_id)""")
        # on PostgreSQL a schema that the role may not use is not on its path
        self.contract = CONTRACT + ("own_schema: public\n" if self.on_postgres else "")
        self.lapse(self.contract, "install", code=0)
        self.role = f"role_{self.db.name}"
        if self.on_postgres:
            self.given(f"create role {self.role} login; revoke usage on schema public from public")
            self.addCleanup(self.given, f"drop owned by {self.role}; drop role {self.role}")
            self.dsn = postgres().dsn(self.db.name, user=self.role)
        else:
            self.db.server.admin(f'create user "{self.role}"')
            self.addCleanup(self.db.server.admin, f'drop user "{self.role}"')
            self.dsn = self.db.server.dsn(self.db.name, user=self.role)

    def fill(self, rows=2):
        self.given("delete from step; delete from note; delete from job; delete from lapse_fuse; delete from lapse_pause")
        self.insert("job", *[(n, 0) for n in range(1, rows + 1)], (90, MS + 1))
        self.insert("step", (1, 1), (2, 90))
        self.insert("note", (1, 1))

    def grants(self, what):
        return self.lapse(self.contract, "install", "--grants", self.role, "--for", what, "--json", code=0).json["grants"]

    def run_grant(self, sql):
        if self.on_postgres:
            self.given(sql)
        else:
            self.db.server.admin(sql.replace("`", '"').rstrip(";"))

    def by_role(self, command):
        return lapse(self.dsn, self.contract, *command)

    def tripped(self):
        """Whatever may be asked for has something to do."""
        self.fill(3)
        self.lapse(self.contract, "sweep", "--now", NOW, code=4)

    def runs(self, command, what):
        if what == "operate" and command[0] in ("ack", "resume", "pause"):
            self.tripped()
            if command[0] == "resume":
                self.lapse(self.contract, "pause", "job", code=0)
        else:
            self.fill()
        return self.by_role(command)

    def works(self, what):
        for command in COMMANDS[what]:
            r = self.runs(command, what)
            self.assertEqual(r.code, 0, r)
            self.assertNotIn("no right", r.err)

    def each_right(self, grant):
        """(REVOKE …, GRANT … of it alone), as many as the grant names."""
        rights, on = re.fullmatch(r"GRANT (.*?) ON (.*);", grant, re.S).groups()
        for right in re.findall(r"[A-Z]+(?: \([^)]*\))?", rights):
            yield f"REVOKE {right} ON {on.replace(' TO ', ' FROM ')};", f"GRANT {right} ON {on};"

    def misses(self, what, revoke):
        """Some command fails, or says what it goes on without; whom it tells what to do is the role."""
        done = [self.runs(command, what) for command in COMMANDS[what]]
        text = "\n".join(r.said for r in done)
        if "REFERENCES" in revoke:
            self.assertIn("GRANT REFERENCES ON *.*", text)
            return
        if "lapse_run" in revoke and what == "sweep":
            self.assertIn("no history is kept", text)
        else:
            self.assertTrue(any(r.code for r in done), text)
        self.assertRegex(text, f"lapse install --grants {self.role} --for ({what}|read)")

    def each_is_needed(self, what):
        grants = self.grants(what)
        for g in grants:
            self.run_grant(g)
        self.works(what)
        for revoke, grant in [pair for g in grants for pair in self.each_right(g)]:
            with self.subTest(revoke):
                self.run_grant(revoke)
                try:
                    self.misses(what, revoke)
                finally:
                    self.run_grant(grant)
        self.works(what)

    def test_sweep(self):
        self.each_is_needed("sweep")
        self.left("job", 90)

    def test_operate(self):
        self.each_is_needed("operate")

    def test_read(self):
        self.each_is_needed("read")
        text = "\n".join(self.grants("read"))
        self.assertEqual(set(re.findall(r"GRANT (\w+)", text)), {"SELECT", "USAGE"} if self.on_postgres else {"SELECT"})

    def test_a_role_does_no_more_than_its_name_says(self):
        for what, others in (("read", [["pause"], ["sweep", "--now", NOW]]), ("operate", [["sweep", "--now", NOW]]),
                             ("sweep", [["pause"], ["ack", "job"]])):
            for g in self.grants(what):
                self.run_grant(g)
            for command in others:
                with self.subTest(what=what, command=command):
                    self.tripped()
                    r = self.by_role(command)
                    self.assertNotEqual(r.code, 0, r)
                    self.assertIn("--grants", r.said)
                    self.assertEqual(len(self.ids("job")), 4)
            for g in self.grants(what):
                for revoke, _ in self.each_right(g):
                    self.run_grant(revoke)

    def test_bad_usage(self):
        for args in (["--grants", "x", "--for", "2h"], ["--for", "read"]):
            self.assertIn("--for", self.lapse(self.contract, "install", *args, code=2).err)
        self.assertEqual(self.lapse(self.contract, "install", "--grants", "x", code=0).out,
                         self.lapse(self.contract, "install", "--grants", "x", "--for", "sweep", code=0).out)
