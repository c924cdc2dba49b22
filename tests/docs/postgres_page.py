"""The terminal of a page whose store is postgresql:///app: a real server with an empty database."""
from terminal import Terminal


class PostgresTerminal(Terminal):
    def __init__(self, folder):
        super().__init__(folder)
        self.server()

    def sql(self, body):
        with self.server().connect("app") as c, c.cursor() as q:
            q.execute(body)
