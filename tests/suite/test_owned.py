"""What goes with a row, what is detached from it, what it waits for."""
from harness import *


@every_engine
class With(Case):
    def setUp(self):
        super().setUp()
        self.given("""
            create table wf (id integer primary key, state text, at_ms bigint);
            create table step (id integer primary key, wf_id integer references wf(id), state text);
            create table log (id integer primary key, step_id integer references step(id));
            create table line (id integer primary key, log_id integer references log(id));
            create index step_wf on step(wf_id); create index log_step on log(step_id);
            create index line_log on line(log_id);
            """)

    def fill(self):
        self.insert("wf", (1, "done", 0), (2, "done", MS + 1), (3, "done", 0))
        self.insert("step", (11, 1, "done"), (12, 1, "open"), (21, 2, "done"), (31, 3, "done"), (99, None, "done"))
        self.insert("log", (111, 11), (112, 11), (121, 12), (211, 21), (999, None))
        self.insert("line", (1111, 111), (1112, 111), (1211, 121), (2111, 211), (9999, None))

    def test_dependents_go_first(self):
        self.insert("wf", (1, "done", 0), (2, "done", MS + 1))
        self.insert("step", (11, 1, "done"), (12, 1, "done"), (21, 2, "done"), (99, None, "done"))
        self.given("drop table line; drop table log")
        r = self.swept("policies: {wf: {table: wf, expires: at_ms, with: [step(wf_id)]}}", gone={"wf": 1, "step": 2})
        self.left("wf", 2)
        self.left("step", 21, 99)
        self.assertEqual([last_part(t["table"]) for t in r.policy("wf")["tables"]], ["step", "wf"])

    def test_three_deep(self):
        self.fill()
        r = self.swept("""
            policies:
              wf:
                table: wf
                expires: at_ms
                with:
                  - ref: step(wf_id)
                    with:
                      - ref: log(step_id)
                        with: [line(log_id)]
            """, gone={"wf": 2, "step": 3, "log": 3, "line": 3})
        self.left("wf", 2)
        self.left("step", 21, 99)
        self.left("log", 211, 999)
        self.left("line", 2111, 9999)
        self.assertEqual([last_part(t["table"]) for t in r.policy("wf")["tables"]], ["line", "log", "step", "wf"])

    def test_one_at_a_time(self):
        self.fill()
        r = self.swept("""
            policies:
              wf:
                table: wf
                expires: at_ms
                batch: 1
                with: [ { ref: step(wf_id), with: [ { ref: log(step_id), with: [ line(log_id) ] } ] } ]
            """, gone={"wf": 2, "step": 3, "log": 3, "line": 3})
        self.assertGreaterEqual(r.policy("wf")["batches"], 2)

    def test_with_where_makes_the_row_wait(self):
        # wf 1 owns an open step: it stays, whole; wf 3 owns none
        self.given("drop table line; drop table log")
        self.insert("wf", (1, "done", 0), (2, "done", MS + 1), (3, "done", 0), (4, "done", 0), (5, "done", 0))
        self.insert("step", (11, 1, "done"), (12, 1, "open"), (31, 3, "done"), (51, 5, None))
        self.swept("""
            policies:
              wf: { table: wf, expires: at_ms, with: [ { ref: step(wf_id), where: { state: done } } ] }
            """, gone={"wf": 2, "step": 1}, kept={"waiting": 2})
        self.left("wf", 1, 2, 5)
        self.left("step", 11, 12, 51)

    def test_where_deep_down_makes_the_root_wait(self):
        self.given("alter table log add column kind text; drop table line")
        self.insert("wf", (1, "done", 0), (3, "done", 0))
        self.insert("step", (11, 1, "done"), (31, 3, "done"))
        self.insert("log", (111, 11, "x"), (112, 11, "keep"), (311, 31, "x"))
        self.swept("""
            policies:
              wf:
                table: wf
                expires: at_ms
                with: [ { ref: step(wf_id), with: [ { ref: log(step_id), where: { kind: x } } ] } ]
            """, gone={"wf": 1, "step": 1, "log": 1}, kept={"waiting": 1})
        self.left("wf", 1)
        self.left("step", 11)
        self.left("log", 111, 112)

    def test_where_in_sql(self):
        self.given("drop table line; drop table log")
        self.insert("wf", (1, "done", 0), (3, "done", 0))
        self.insert("step", (11, 1, "done"), (31, 3, "open"))
        self.swept("""
            policies:
              wf: { table: wf, expires: at_ms, with: [ { ref: step(wf_id), where: "this.state <> 'open'" } ] }
            """, gone={"wf": 1, "step": 1}, kept={"waiting": 1})
        self.left("wf", 3)

    def test_two_dependents(self):
        self.given("drop table line; drop table log; create table note (id integer primary key, wf_id integer)")
        self.insert("wf", (1, "done", 0), (2, "done", MS + 1))
        self.insert("step", (11, 1, "x"), (21, 2, "x"))
        self.insert("note", (1, 1), (2, 1), (3, 2), (4, 7), (5, None))
        self.swept("policies: {wf: {table: wf, expires: at_ms, with: [step(wf_id), note(wf_id)]}}",
                   gone={"wf": 1, "step": 1, "note": 2})
        self.left("note", 3, 4, 5)

    def test_the_same_table_by_two_columns(self):
        self.given("""
            create table link (id integer primary key, from_wf integer references wf(id), to_wf integer references wf(id));
            drop table line; drop table log; drop table step""")
        self.insert("wf", (1, "done", 0), (2, "done", MS + 1), (3, "done", 0), (4, "done", MS + 1))
        self.insert("link", (1, 1, 2), (2, 2, 1), (3, 1, 3), (4, 2, 4), (5, 1, 1))
        self.swept("policies: {wf: {table: wf, expires: at_ms, with: [link(from_wf), link(to_wf)]}}",
                   gone={"wf": 2, "link": 4})
        self.left("link", 4)
        self.left("wf", 2, 4)

    def test_many_dependents(self):
        self.given("drop table line; drop table log")
        self.insert("wf", *[(n, "done", 0 if n % 2 else MS + 1) for n in range(1, 101)])
        self.insert("step", *[(n, n % 100 + 1, "x") for n in range(1, 2001)])
        self.swept("policies: {wf: {table: wf, expires: at_ms, batch: 7, with: [step(wf_id)]}}",
                   gone={"wf": 50, "step": 1000})

    def test_a_dependent_with_rows_of_its_own_key_kind(self):
        # text keys, and a dependent without any key
        self.given(f"""
            create table inst ("key" text{self.exact} primary key, at_ms bigint);
            create table kv (inst text{self.exact} references inst("key"), name text, value text)""")
        self.insert("inst", ("a'b", 0), ("A'B", MS + 1), ("ž", 0))
        self.insert("kv", ("a'b", "x", "1"), ("a'b", "x", "1"), ("A'B", "x", "1"), ("ž", "y", None), (None, "z", None))
        self.swept("policies: {inst: {table: inst, expires: at_ms, with: [kv(inst)]}}", gone={"inst": 2, "kv": 3})
        self.left("inst", "A'B", column='"key"')

    def test_a_dependent_that_is_also_swept(self):
        self.given("drop table line; drop table log")
        self.insert("wf", (1, "done", 0), (2, "done", MS + 1))
        self.insert("step", (11, 1, "done"), (21, 2, "dead"), (22, 2, "done"))
        self.given("alter table step add column at_ms bigint")
        self.db.execute("update step set at_ms = 0")
        self.swept("""
            policies:
              wf:   { table: wf, expires: at_ms, with: [step(wf_id)] }
              step: { table: step, rows: { state: dead }, expires: at_ms }
            """, gone={"wf": 1, "step": 2})
        self.left("step", 22)

    def test_a_row_that_is_owned_twice_counts_once(self):
        self.given("""
            create table r (id integer primary key, at_ms bigint);
            create table a (id integer primary key, r_id integer references r(id));
            create table b (id integer primary key, r_id integer references r(id));
            create table c (id integer primary key, a_id integer references a(id), b_id integer references b(id))""")
        self.insert("r", (1, 0), (2, MS + 1))
        self.insert("a", (1, 1), (2, 2))
        self.insert("b", (1, 1), (2, 2))
        self.insert("c", (1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 2, 2), (5, None, 1), (6, None, None))
        self.swept("""
            policies:
              r:
                table: r
                expires: at_ms
                with: [ { ref: a(r_id), with: [ c(a_id) ] }, { ref: b(r_id), with: [ c(b_id) ] } ]
            """, gone={"r": 1, "a": 1, "b": 1, "c": 4})
        self.left("c", 4, 6)

    def test_tables_that_refer_to_each_other(self):
        self.given("""
            create table doc (id integer primary key, current_rev integer, at_ms bigint);
            create table rev (id integer primary key, doc_id integer references doc(id))""")
        if not self.on_sqlite:
            self.given("alter table doc add foreign key (current_rev) references rev(id)")
        self.insert("doc", (1, None, 0), (2, None, MS + 1), (3, None, MS + 1))
        self.insert("rev", (11, 1), (12, 1), (21, 2))
        self.db.execute("update doc set current_rev = 12 where id = 1")
        self.db.execute("update doc set current_rev = 21 where id = 2")
        self.db.execute("update doc set current_rev = 11 where id = 3")
        self.swept("""
            policies:
              doc: { table: doc, expires: at_ms, with: [ { ref: rev(doc_id), detach: [ doc(current_rev) ] } ] }
            """, gone={"doc": 1, "rev": 2}, detached=...)
        self.assertEqual(self.db.rows("select id, current_rev from doc order by 1"), [(2, 21), (3, None)])

    def test_a_dependent_shared_by_two_roots(self):
        self.given("drop table line; drop table log")
        self.given("create table tag (id integer primary key, wf_a integer references wf(id), wf_b integer references wf(id))")
        self.insert("wf", *[(n, "done", 0) for n in range(1, 7)])
        self.insert("tag", *[(n, n, n % 6 + 1) for n in range(1, 7)])
        self.swept("policies: {wf: {table: wf, expires: at_ms, batch: 1, with: [step(wf_id), tag(wf_a), tag(wf_b)]}}",
                   gone={"wf": 6, "tag": 6})

    def test_an_unlisted_cascade_is_refused(self):
        self.given("""
            create table owner (id integer primary key, at_ms bigint);
            create table owned (id integer primary key, owner_id integer references owner(id) on delete cascade)""")
        self.insert("owner", (1, 0))
        self.insert("owned", (1, 1))
        with self.untouched():
            r = self.sweep("policies: {owner: {table: owner, expires: at_ms}}", code=3)
        p = r.policy("owner")
        self.assertEqual(p["outcome"], "refused")
        self.assertIn("owned", p["error"])

    def test_cascades_that_are_listed_are_counted(self):
        self.given("""
            create table owner (id integer primary key, at_ms bigint);
            create table owned (id integer primary key, owner_id integer references owner(id) on delete cascade)""")
        self.insert("owner", (1, 0), (2, MS + 1))
        self.insert("owned", (1, 1), (2, 1), (3, 2))
        self.swept("policies: {owner: {table: owner, expires: at_ms, with: [owned(owner_id)]}}",
                   gone={"owner": 1, "owned": 2})

    def test_detach_and_after_below_with(self):
        self.given("drop table line")
        self.insert("wf", (1, "done", 0), (2, "done", 0))
        self.insert("step", (11, 1, "x"), (21, 2, "x"))
        self.insert("log", (111, 11), (211, 21))
        self.swept("""
            policies:
              wf: { table: wf, expires: at_ms, with: [ { ref: step(wf_id), detach: [ log(step_id) ] } ] }
            """, gone={"wf": 2, "step": 2}, detached={"log": 2})
        self.assertEqual(self.db.rows("select id, step_id from log order by 1"), [(111, None), (211, None)])


@every_engine
class Neighbours(Case):
    """Keys that follow each other may be looked up as stretches: what lies between two of them is nobody's but its owner's."""

    def tried(self, key, reference, tie, first=1, last=400):
        self.given(f"""
            create table job (id {key} primary key, state varchar(10) not null, at_ms bigint not null);
            create table step (id bigint primary key, job_id {reference} {tie});
            create table file (id bigint primary key, job_id {reference} {tie});
            create index job_at on job(at_ms); create index step_job on step(job_id); create index file_job on file(job_id);
            """)
        every = range(first, last + 1)
        stay = [n for n in every if n % 9 in (3, 7)]        # one runs still, the other is too young; their neighbours go
        self.insert("job", *[(n, "open" if n % 9 == 3 else "done", MS + DAY if n % 9 == 7 else MS - DAY + n) for n in every])
        self.insert("step", *[(2 * n + k, n) for n in every for k in (0, 1)], (100001, None))
        self.insert("file", *[(n, n) for n in every if n % 4 == 0])
        went = [n for n in every if n not in stay]
        self.swept("policies: {job: {table: job, rows: {state: done}, expires: at_ms, batch: 150, with: [step(job_id), file(job_id)]}}",
                   gone={"job": len(went), "step": 2 * len(went), "file": sum(n % 4 == 0 for n in went)})
        self.left("job", *stay)
        self.left("step", *[2 * n + k for n in stay for k in (0, 1)], 100001)
        self.left("file", *[n for n in stay if n % 4 == 0])

    def test_with_foreign_keys(self):
        self.tried("integer", "integer", "references job(id)")

    def test_without_foreign_keys_in_another_type(self):
        self.tried("bigint", "smallint", "")

    def test_from_below_nothing(self):
        self.tried("smallint", "bigint", "", first=-200, last=200)


@every_engine
class Trees(Case):
    """`with` on the table itself is the whole subtree."""

    def setUp(self):
        super().setUp()
        self.given("""
            create table node (id integer primary key, parent_id integer references node(id), at_ms bigint);
            create index node_parent on node(parent_id);
            create table att (id integer primary key, node_id integer references node(id));
            create index att_node on att(node_id)""")

    TREE = "policies: {node: {table: node, expires: at_ms, with: [node(parent_id), att(node_id)]}}"

    def test_the_whole_subtree(self):
        later = MS + 1
        self.insert("node", (1, None, 0), (2, 1, later), (3, 2, later), (4, 3, later), (5, None, later), (6, 5, later))
        self.insert("att", (1, 1), (2, 4), (3, 4), (4, 6), (5, None))
        r = self.swept(self.TREE, gone={"node": 4, "att": 3})
        self.left("node", 5, 6)
        self.left("att", 4, 5)
        self.assertEqual(r.policy("node")["rows"], 4)

    def test_a_row_without_a_time_holds_the_subtree_back(self):
        self.insert("node", (1, None, 0), (2, 1, MS + 1), (3, 2, None), (5, None, 0), (6, 5, MS + 1))
        r = self.swept(self.TREE, gone={"node": 2})
        self.left("node", 1, 2, 3)
        self.assertEqual(r.policy("node")["rows"], 2)

    def test_a_row_that_is_held_holds_the_subtree_back(self):
        self.given("alter table node add column pinned integer")
        self.insert("node", (1, None, 0, None), (2, 1, MS + 1, None), (3, 2, 0, 1), (5, None, 0, None), (6, 5, 0, 0))
        self.swept(self.TREE.replace("expires", "hold: {pinned: 1}, expires"), gone={"node": 2})
        self.left("node", 1, 2, 3)

    def test_a_row_outside_rows_holds_the_subtree_back(self):
        self.given("alter table node add column state text")
        self.insert("node", (1, None, 0, "done"), (2, 1, 0, "done"), (3, 2, 0, "running"), (5, None, 0, "done"),
                    (6, 5, MS + 1, "done"))
        self.swept(self.TREE.replace("expires", "rows: {state: done}, expires"), gone={"node": 2})
        self.left("node", 1, 2, 3)

    def test_a_row_that_is_never_due_by_its_own_value_goes_with_its_root(self):
        self.given("alter table node add column state varchar(20)")
        self.insert("node", (1, None, 0, "done"), (2, 1, 0, "kept"), (3, 2, 0, "other"), (5, None, 0, "kept"))
        self.swept("""policies: {node: {table: node, age: at_ms, with: [node(parent_id), att(node_id)],
                                       keep: {by: state, values: {done: 1h, kept: never}}}}""", gone={"node": 3})
        self.left("node", 5)

    def test_own_rows_that_a_dependent_owns_hold_back_too(self):
        self.given("create table job (id integer primary key, at_ms bigint, run_id integer);"
                   "create table run (id integer primary key, job_id integer)")
        self.insert("job", (1, 0, None), (2, MS + 1, 1), (3, 0, None), (4, None, 3), (5, 0, None), (6, 0, 5))
        self.insert("run", (1, 1), (3, 3), (5, 5))
        self.swept("""policies: {job: {table: job, hold: {id: 6}, expires: at_ms,
                                      with: [{ref: run(job_id), with: [job(run_id)]}]}}""",
                   gone={"job": 2, "run": 1}, kept={"waiting": 2})
        self.left("job", 3, 4, 5, 6)

    def test_a_due_child_leaves_its_parent(self):
        self.insert("node", (1, None, MS + 1), (2, 1, 0), (3, 2, MS + 1))
        self.swept(self.TREE, gone={"node": 2})
        self.left("node", 1)

    def test_parent_and_child_both_due_count_once(self):
        for batch in ("1", "2", "null", "1000"):
            with self.subTest(batch):
                self.db.empty("node")
                self.insert("node", (1, None, 0), (2, 1, 0), (3, 2, 0), (4, 1, 0))
                self.swept(self.TREE.replace("expires", f"batch: {batch}, expires"), gone={"node": 4})

    def test_a_row_that_is_its_own_parent(self):
        self.insert("node", (1, 1, 0), (2, 2, MS + 1), (3, 1, MS + 1))
        self.swept(self.TREE, gone={"node": 2})
        self.left("node", 2)

    def test_a_cycle(self):
        self.insert("node", (1, None, 0), (2, 1, MS + 1), (3, 2, MS + 1), (9, None, MS + 1))
        self.db.execute("update node set parent_id = 3 where id = 1")
        self.insert("att", (1, 3), (2, 9))
        self.swept(self.TREE, gone={"node": 3, "att": 1})
        self.left("node", 9)

    def test_deep(self):
        self.insert("node", (1, None, 0), *[(n, n - 1, MS + 1) for n in range(2, 301)])
        self.swept(self.TREE, gone={"node": 300})

    def test_wide(self):
        self.insert("node", (1, None, 0), *[(n, 1, MS + 1) for n in range(2, 1502)])
        self.swept(self.TREE.replace("expires", "batch: 10, expires"), gone={"node": 1501})

    def test_two_ways_down(self):
        self.given("alter table node add column other_id integer references node(id)")
        self.insert("node", (1, None, 0, None), (2, 1, MS + 1, None), (3, None, MS + 1, 2), (4, 3, MS + 1, None),
                    (5, None, MS + 1, None))
        self.swept("policies: {node: {table: node, expires: at_ms, with: [node(parent_id), node(other_id), "
                   "att(node_id)]}}", gone={"node": 4})
        self.left("node", 5)

    def test_a_tree_below_a_root(self):
        self.given("""
            create table doc (id integer primary key, at_ms bigint);
            create table comment (id integer primary key, doc_id integer references doc(id),
                                  reply_to integer references comment(id));
            create table vote (id integer primary key, comment_id integer references comment(id))""")
        self.insert("doc", (1, 0), (2, MS + 1))
        self.insert("comment", (1, 1, None), (2, None, 1), (3, None, 2), (4, 2, None), (5, None, 4))
        self.insert("vote", (1, 3), (2, 5), (3, 1))
        self.swept("""
            policies:
              doc:
                table: doc
                expires: at_ms
                with: [ { ref: comment(doc_id), with: [ comment(reply_to), vote(comment_id) ] } ]
            """, gone={"doc": 1, "comment": 3, "vote": 2})
        self.left("comment", 4, 5)
        self.left("vote", 2)

    def test_a_where_inside_the_tree(self):
        self.given("alter table node add column locked integer")
        self.insert("node", (1, None, 0, 0), (2, 1, MS + 1, 0), (3, 2, MS + 1, 1), (5, None, 0, 0), (6, 5, MS + 1, 0))
        self.swept("""
            policies:
              node:
                table: node
                expires: at_ms
                with: [ { ref: node(parent_id), where: { locked: 0 } }, att(node_id) ]
            """, gone={"node": 2})
        self.left("node", 1, 2, 3)

    def test_composite_self_reference(self):
        self.given("""
            create table part (tenant integer not null, no integer not null, up_tenant integer, up_no integer,
                               at_ms bigint, primary key (tenant, no),
                               foreign key (up_tenant, up_no) references part(tenant, no))""")
        self.insert("part", (1, 1, None, None, 0), (1, 2, 1, 1, MS + 1), (2, 1, None, None, MS + 1),
                    (2, 2, 1, 2, MS + 1), (2, 3, 2, 1, MS + 1))
        self.swept("policies: {part: {table: part, expires: at_ms, with: [part(up_tenant, up_no)]}}", gone={"part": 3})
        self.assertEqual(self.db.rows("select tenant, no from part order by 1, 2"), [(2, 1), (2, 3)])


@every_engine
class Detach(Case):
    def test_the_referring_rows_stay(self):
        self.given("""
            create table meta (id integer primary key, at_ms bigint);
            create table letter (id integer primary key, retry_id integer references meta(id), body text)""")
        self.insert("meta", (1, 0), (2, MS + 1))
        self.insert("letter", (1, 1, "a"), (2, 1, "b"), (3, 2, "c"), (4, None, "d"))
        r = self.swept("policies: {meta: {table: meta, expires: at_ms, detach: [letter(retry_id)]}}",
                       gone={"meta": 1}, detached={"letter": 2})
        self.assertEqual(self.db.rows("select id, retry_id, body from letter order by 1"),
                         [(1, None, "a"), (2, None, "b"), (3, 2, "c"), (4, None, "d")])
        self.assertEqual(counts(r.policy("meta")["detached"]), {"letter": 2})

    def test_inside_the_swept_table(self):
        self.given("create table meta (id integer primary key, parent_id integer references meta(id), at_ms bigint)")
        self.insert("meta", (1, None, 0), (2, 1, MS + 1), (3, 1, MS + 1), (4, 2, MS + 1))
        self.swept("policies: {meta: {table: meta, expires: at_ms, detach: [meta(parent_id)]}}",
                   gone={"meta": 1}, detached={"meta": 2})
        self.assertEqual(self.db.rows("select id, parent_id from meta order by 1"), [(2, None), (3, None), (4, 2)])

    def test_inside_the_swept_table_both_due(self):
        for batch in ("1", "2", "null", "1000"):
            with self.subTest(batch):
                self.given("""
                    drop table if exists meta;
                    create table meta (id integer primary key, parent_id integer references meta(id), at_ms bigint)""")
                self.insert("meta", (1, None, 0), (2, 1, 0), (3, 2, 0), (4, 3, MS + 1))
                self.db.execute("update meta set parent_id = 3 where id = 1")
                self.swept(f"policies: {{meta: {{table: meta, expires: at_ms, batch: {batch}, detach: [meta(parent_id)]}}}}",
                           gone={"meta": 3}, detached=...)
                self.assertEqual(self.db.rows("select id, parent_id from meta"), [(4, None)])

    def test_composite(self):
        self.given("""
            create table job (tenant integer not null, id integer not null, at_ms bigint, primary key (tenant, id));
            create table ticket (id integer primary key, job_tenant integer, job_id integer,
                                 foreign key (job_tenant, job_id) references job(tenant, id))""")
        self.insert("job", (1, 1, 0), (1, 2, MS + 1), (2, 1, MS + 1))
        self.insert("ticket", (1, 1, 1), (2, 1, 2), (3, 2, 1), (4, None, None))
        self.swept("policies: {job: {table: job, expires: at_ms, detach: [ticket(job_tenant, job_id)]}}",
                   gone={"job": 1}, detached={"ticket": 1})
        self.assertEqual(self.db.rows("select * from ticket order by 1"),
                         [(1, None, None), (2, 1, 2), (3, 2, 1), (4, None, None)])

    def test_without_a_foreign_key(self):
        self.given("create table a (id integer primary key, at_ms bigint); create table b (id integer primary key, a_id integer)")
        self.insert("a", (1, 0), (2, MS + 1))
        self.insert("b", (1, 1), (2, 2), (3, 3))
        self.swept("policies: {a: {table: a, expires: at_ms, detach: [b(a_id)]}}", gone={"a": 1}, detached={"b": 1})
        self.assertEqual(self.db.rows("select * from b order by 1"), [(1, None), (2, 2), (3, 3)])

    def test_the_metadata_contract(self):
        """The five dependents of a metadata row at once, as operators write them."""
        self.given("""
            create table metadata (id integer primary key, name text, train_state text, start_ms bigint,
                                   parent_id integer references metadata(id));
            create table work_queue (id integer primary key, metadata_id integer references metadata(id));
            create table log (id integer primary key, metadata_id integer references metadata(id));
            create table dead_letter (id integer primary key, retry_metadata_id integer references metadata(id))""")
        old = MS - HOUR
        self.insert("metadata", (1, "ManifestManagerTrain", "completed", old, None),
                    (2, "ManifestManagerTrain", "in_progress", old, 1), (3, "BusinessTrain", "completed", old, 1),
                    (4, "MetadataCleanupTrain", "failed", old, 3), (5, "MetadataCleanupTrain", "failed", MS, None))
        self.insert("work_queue", (1, 1), (2, 2), (3, 4))
        self.insert("log", (1, 1), (2, 1), (3, 3), (4, None))
        self.insert("dead_letter", (1, 4), (2, 2))
        self.swept("""
            policies:
              metadata:
                table: metadata
                rows: { name: [ManifestManagerTrain, MetadataCleanupTrain],
                        train_state: [completed, failed, cancelled] }
                age: start_ms
                keep: 30m
                with:   [work_queue(metadata_id), log(metadata_id)]
                detach: [dead_letter(retry_metadata_id), metadata(parent_id)]
            """, gone={"metadata": 2, "work_queue": 2, "log": 2}, detached={"dead_letter": 1, "metadata": 2})
        self.assertEqual(self.db.rows("select id, parent_id from metadata order by 1"),
                         [(2, None), (3, None), (5, None)])


@every_engine
class After(Case):
    def setUp(self):
        super().setUp()
        self.given("""
            create table inbox (tenant integer not null, id integer not null, at_ms bigint, primary key (tenant, id));
            create table outbox (id integer primary key, tenant integer, inbox_id integer, state text, at_ms bigint)""")
        self.insert("inbox", (1, 1, 0), (1, 2, 0), (2, 1, 0), (2, 2, MS + 1))

    def test_waits_while_any_is_left(self):
        self.insert("outbox", (1, 1, 1, "new", None), (2, 2, 2, "new", None), (3, None, 1, "new", None))
        self.swept("policies: {inbox: {table: inbox, expires: at_ms, after: [outbox(tenant, inbox_id)]}}",
                   gone={"inbox": 2}, kept={"waiting": 1})
        self.assertEqual(self.db.rows("select tenant, id from inbox order by 1, 2"), [(1, 1), (2, 2)])
        self.left("outbox", 1, 2, 3)

    def test_narrowed(self):
        self.insert("outbox", (1, 1, 1, "sent", None), (2, 1, 2, "new", None), (3, 2, 1, None, None))
        self.swept("""
            policies:
              inbox: { table: inbox, expires: at_ms, after: [ { ref: "outbox(tenant, inbox_id)", where: { state: new } } ] }
            """, gone={"inbox": 2}, kept={"waiting": 1})
        self.assertEqual(self.db.rows("select tenant, id from inbox order by 1, 2"), [(1, 2), (2, 2)])

    def test_the_order_of_the_file(self):
        self.insert("outbox", (1, 1, 1, "sent", 0), (2, 1, 2, "new", MS + 1))
        self.swept("""
            policies:
              outbox: { table: outbox, expires: at_ms }
              inbox:  { table: inbox, expires: at_ms, after: [outbox(tenant, inbox_id)] }
            """, gone={"outbox": 1, "inbox": 2}, same_plan=False)
        self.assertEqual(self.db.rows("select tenant, id from inbox order by 1, 2"), [(1, 2), (2, 2)])

    def test_after_the_table_itself(self):
        self.given("create table n (id integer primary key, up integer references n(id), at_ms bigint)")
        self.insert("n", (1, None, 0), (2, 1, 0), (3, None, 0), (4, 3, MS + 1))
        self.sweep("policies: {n: {table: n, expires: at_ms, after: [n(up)]}}")
        self.assertNotIn(2, self.ids("n"))      # a leaf
        self.assertTrue({3, 4} <= set(self.ids("n")))

    def test_many_batches_of_waiting_rows(self):
        self.given("create table p (id integer primary key, at_ms bigint); "
                   "create table c (id integer primary key, p_id integer references p(id))")
        self.insert("p", *[(n, 0) for n in range(1, 51)])
        self.insert("c", *[(n, n) for n in range(1, 46)])
        self.swept("policies: {p: {table: p, expires: at_ms, batch: 3, after: [c(p_id)]}}", gone={"p": 5},
                   kept={"waiting": 45})
        self.left("p", *range(1, 46))

    def test_with_and_after(self):
        self.given("""
            create table p (id integer primary key, at_ms bigint);
            create table owned (id integer primary key, p_id integer references p(id));
            create table busy (id integer primary key, p_id integer references p(id))""")
        self.insert("p", (1, 0), (2, 0))
        self.insert("owned", (1, 1), (2, 2))
        self.insert("busy", (1, 1))
        self.swept("policies: {p: {table: p, expires: at_ms, with: [owned(p_id)], after: [busy(p_id)]}}",
                   gone={"p": 1, "owned": 1})
        self.left("owned", 1)


class CirclesThatAreRestricted(Case, SqliteTest):
    """SQLite has ON DELETE RESTRICT act row by row, also on rows that go in the same statement."""
    TREE = "policies: {node: {table: node, expires: at_ms, with: [node(parent_id)]}}"

    def circle(self, null):
        self.given(f"create table node (id integer primary key, parent_id integer {null} references node(id) on delete restrict, "
                   "at_ms bigint)")
        c = self.db.connect()
        c.execute("pragma foreign_keys = off")
        c.executemany("insert into node values (?, ?, ?)", [(1, 3, 0), (2, 1, MS + 1), (3, 2, MS + 1), (9, 9, MS + 1)])
        c.close()

    def test_are_broken_where_a_reference_can_be_null(self):
        self.circle("")
        self.swept(self.TREE, gone={"node": 3})
        self.left("node", 9)
        self.no_finding(self.check(self.TREE), "circle")

    def test_are_said_where_none_can(self):
        self.circle("not null")
        self.finding(self.check(self.TREE), "warning", "in a circle", "on delete restrict")
        self.assertTrue(self.plan(self.TREE).policy("node")["circles_stay"])
        self.assertIn("in a circle are counted", self.lapse(self.TREE, "plan", "--now", NOW, code=0).out)
        self.sweep(self.TREE, code=1)
        self.left("node", 1, 2, 3, 9)
