"""A real group of three MySQL servers for tests (group replication), on the MySQL that scripts/mysql unpacks.

    group = Group()                     # single-primary: the first takes writes, the others read; an election picks the next
    group = Group(multi=True)           # all of them take writes
    db = group.fresh()                  # a database of the group; db.dsn names all members
    group.primary().kill()
"""
import contextlib
import os
import signal
import time
import uuid

import pymysql

from daemon import eventually
from galera import ClusterDatabase
from mysql import Mysql
from servers import at_end, free_port, new_path

# The group notices soon that a member is gone.
SETTINGS = {
    "gtid-mode": "ON", "enforce-gtid-consistency": "ON", "log-bin": "binlog", "sync-binlog": "0", "skip-log-bin": None,
    "skip-name-resolve": "ON", "report-host": "127.0.0.1", "plugin-load-add": "group_replication.so", "binlog-checksum": "NONE",
    "performance-schema": "ON", "innodb-buffer-pool-size": "32M", "performance-schema-max-table-instances": "200",
    "loose-group-replication-start-on-boot": "OFF", "loose-group-replication-ssl-mode": "DISABLED",
    "loose-group-replication-recovery-get-public-key": "ON", "loose-group-replication-ip-allowlist": "127.0.0.1/8",
    "loose-group-replication-member-expel-timeout": "0", "loose-group-replication-unreachable-majority-timeout": "5",
}


class Member(Mysql):
    def __init__(self, group, number):
        self.group, self.number, self.inner = group, number, group.inner[number]
        super().__init__(port=True, settings={
            **SETTINGS, "server-id": str(number + 1),
            "loose-group-replication-group-name": group.name,
            "loose-group-replication-local-address": f"127.0.0.1:{self.inner}",
            "loose-group-replication-group-seeds": ",".join(f"127.0.0.1:{p}" for p in group.inner),
            "loose-group-replication-single-primary-mode": "OFF" if group.multi else "ON",
            "loose-group-replication-enforce-update-everywhere-checks": "ON" if group.multi else "OFF"})
        self.admin("reset binary logs and gtids")       # what it was set up with is no member's alone

    def join(self, first=False):
        self.admin("change replication source to source_user = 'root' for channel 'group_replication_recovery'")
        if first:
            self.admin("set global group_replication_bootstrap_group = on")
        self.admin("start group_replication")
        if first:
            self.admin("set global group_replication_bootstrap_group = off")
        eventually(self.online, 60, words=lambda: self.log.read_text()[-3000:])

    def online(self):
        return self.admin("select member_state from performance_schema.replication_group_members where member_id = @@server_uuid"
                          )[0][0] == "ONLINE"

    def kill(self):
        self.stop(signal.SIGKILL)

    def role(self):
        return self.admin("select member_role from performance_schema.replication_group_members where member_id = @@server_uuid")[0][0]


class Group:
    def __init__(self, multi=False):
        self.multi, self.name = multi, str(uuid.uuid4())
        self.inner = [free_port() for _ in range(3)]
        self.members = [Member(self, n) for n in range(3)]
        for m in self.members:
            m.join(first=m is self.members[0])
        eventually(lambda: len(self.members[0].admin("select 1 from performance_schema.replication_group_members"
                                                     " where member_state = 'ONLINE'")) == 3, 60, words="three are online")

    def alive(self):
        return [m for m in self.members if m.process.poll() is None]

    def primary(self):
        """The one that takes writes; of several the first."""
        found = []

        def one():
            for m in self.alive():
                with contextlib.suppress(pymysql.Error):
                    if m.online() and m.role() == "PRIMARY" and not m.admin("select @@global.super_read_only")[0][0]:
                        found.append(m)
                        return True
            return False
        eventually(one, 60, words="a primary")
        return found[0]

    def fresh(self):
        name = f"g{os.getpid()}_{time.monotonic_ns()}"
        first = self.primary()
        first.admin(f"create database `{name}`")
        return OnGroup(self, first, name)

    def settle(self):
        """Every member has applied what was committed anywhere."""
        done = self.primary().admin("select @@global.gtid_executed")[0][0]
        for m in self.alive():
            m.admin("select wait_for_executed_gtid_set(%s, 30)", (done,))

    def stop(self):
        for m in self.members:
            m.stop(signal.SIGKILL)


class OnGroup(ClusterDatabase):
    """Through one member; its dsn names all of them, that one first."""

    def __init__(self, group, member, name):
        super().__init__(member, name)
        self.group = group
        members = sorted(group.members, key=lambda m: m is not member)
        self.dsn = f"mariadb://root@{','.join(f'127.0.0.1:{m.port}' for m in members)}/{name}"

    def on(self, member):
        return OnGroup(self.group, member, self.name)


__all__ = ["Group", "Member"]
