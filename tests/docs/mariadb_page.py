"""The terminal of a page whose store is mariadb://lapse@db/app: a real server, with that user and an empty database."""
from mariadb import Mariadb
from terminal import Terminal

STORE = "mariadb://lapse@db/app"


class MariadbTerminal(Terminal):
    def __init__(self, folder):
        super().__init__(folder)
        self.maria = Mariadb(port=True)
        for statement in ("create database app", "create user lapse@'%'", "grant all privileges on app.* to lapse@'%'",
                          "grant references on *.* to lapse@'%'"):
            self.maria.admin(statement)

    def contract(self, text):
        return text.replace("@db/", f"@127.0.0.1:{self.maria.port}/")

    def sql(self, body):
        db = self.maria.connect("app")
        with db.cursor() as q:
            for statement in filter(str.strip, body.split(";\n")):
                q.execute(statement)
        db.commit()
        db.close()

    def run(self, command, said=""):
        return super().run(command, said).replace(f"127.0.0.1:{self.maria.port}", "db:3306")

    def close(self):
        super().close()
        self.maria.stop()
