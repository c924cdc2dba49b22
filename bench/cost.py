"""The case `cost`: what lapse's own process does for a row and for a batch, counted, so that no other load can be seen in it.

Instructions by valgrind's callgrind, allocations by a library put before the C library's own. Each as the difference between
a sweep of more rows and one of fewer: what a process needs to begin is not in it. On SQLite the engine runs in the same process.
"""
import json
import re
import subprocess

import harness
import process
import tables
from engines import ENGINES

BATCH = 500
FEW, MANY = 3, 11           # batches

COUNTER_C = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
static unsigned long long calls, bytes;
static void *(*real_malloc)(size_t), *(*real_realloc)(void *, size_t), *(*real_calloc)(size_t, size_t);
static char early[4096]; /* dlsym itself wants some before it has answered */
static size_t early_used;
static void count(size_t n)
{
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&bytes, n, __ATOMIC_RELAXED);
}
__attribute__((constructor)) static void begin(void)
{
    real_malloc = dlsym(RTLD_NEXT, "malloc");
    real_realloc = dlsym(RTLD_NEXT, "realloc");
    real_calloc = dlsym(RTLD_NEXT, "calloc");
}
void *malloc(size_t n)
{
    if (!real_malloc)
        begin();
    count(n);
    return real_malloc(n);
}
void *realloc(void *p, size_t n)
{
    if (!real_realloc)
        begin();
    count(n);
    return real_realloc(p, n);
}
void *calloc(size_t a, size_t b)
{
    if (!real_calloc) {
        void *p = early + early_used;
        early_used += (a * b + 15) / 16 * 16;
        return early_used <= sizeof early ? p : NULL;
    }
    count(a * b);
    return real_calloc(a, b);
}
__attribute__((destructor)) static void end(void)
{
    FILE *f = fopen(getenv("COUNT_FILE"), "w");
    if (f) {
        fprintf(f, "%llu %llu\n", calls, bytes);
        fclose(f);
    }
}
"""


def counter():
    """The library that counts."""
    home = harness.new_path("allocations")
    home.mkdir()
    (home / "count.c").write_text(COUNTER_C)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", home / "count.so", home / "count.c", "-ldl"], check=True)
    return home / "count.so"


def prepared(place, due):
    """The data with only the first so many executions that are due."""
    place.fresh()
    last, = place.db.rows(f"SELECT max(id) FROM (SELECT id FROM metadata WHERE {tables.condition(place.engine)} "
                          f"ORDER BY start_time LIMIT {due}) AS picked")[0]
    for child in tables.CHILDREN:
        place.db.execute(f"DELETE FROM {child} WHERE metadata_id > {last}")
    place.db.execute(f"DELETE FROM metadata WHERE id > {last}")
    place.db.close()


def rows(done):
    return sum(t["rows"] for p in json.loads(done.out)["policies"] for t in p["tables"])


def instructions(place, contract):
    out = harness.new_path("callgrind")
    done = process.sweep(place.db, contract, tables.NOW, before=("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"))
    return int(re.search(r"Collected : (\d+)", done.err)[1]), rows(done)


def allocations(place, contract, library):
    file = harness.new_path("count")
    done = process.sweep(place.db, contract, tables.NOW, env={"LD_PRELOAD": library, "COUNT_FILE": file})
    return [*map(int, file.read_text().split()), json.loads(done.out)["policies"][0]["batches"]]


def measure(engine, say=lambda text: None):
    """What a row and a batch of so many rows cost."""
    case, library = tables.Tables, counter()
    contract = case.contract_on(engine, batch=BATCH)
    place = ENGINES[engine](case, 2 * BATCH * MANY)
    counted, allocated = [], []
    for batches in (FEW, MANY):
        prepared(place, BATCH * batches)
        counted.append(instructions(place, contract))
        prepared(place, BATCH * batches)
        allocated.append(allocations(place, contract, library))
        place.end()
        say(f"cost on {engine}: {counted[-1][1]} rows: {counted[-1][0]:,} instructions, {allocated[-1][0]:,} allocations")
    place.drop()
    (few, few_rows), (many, many_rows) = counted
    calls, size, batches = (many - few for few, many in zip(*allocated))
    return {"engine": engine, "batch": BATCH, "rows": many_rows, "instructions_per_row": (many - few) / (many_rows - few_rows),
            "allocations_per_batch": calls / batches, "bytes_per_batch": size / batches}
