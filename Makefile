# lapse: `make` builds build/lapse, `make demo` shows it, `make test` proves it. Each installs what it needs (scripts/setup).
BUILD ?= build
SANITIZED ?= build-san
THREADS ?= build-tsan
CONFIGURE = scripts/configure
# The program alone needs no more than a build needs; the tests are built where they run.
MESON_PLAIN = -Dtests=disabled
MESON_SAN = --werror -Dtests=enabled -Db_sanitize=address,undefined -Db_lundef=false -Db_pie=false

.PHONY: all demo quick test test-cluster test-mysql bench docs sanitized threads format clean setup-build setup-demo \
    setup-test setup-cluster

all: setup-build
	@test -f $(BUILD)/build.ninja || $(CONFIGURE) $(BUILD) $(MESON_PLAIN)
	@ninja -C $(BUILD) --quiet

sanitized: setup-test
	@test -f $(SANITIZED)/build.ninja || $(CONFIGURE) $(SANITIZED) $(MESON_SAN)
	@ninja -C $(SANITIZED) --quiet

# The program alone, for ThreadSanitizer, which does not go together with the others.
threads: setup-build
	@test -f $(THREADS)/build.ninja || $(CONFIGURE) $(THREADS) --werror $(MESON_PLAIN) -Db_sanitize=thread -Db_lundef=false
	@ninja -C $(THREADS) --quiet lapse

demo: setup-demo all
	@scripts/demo $(BUILD)/lapse

# Whether the core works, within seconds of a build. From then on `make` builds the unit tests too.
quick: setup-test all
	@test -d $(BUILD)/tests || meson configure $(BUILD) -Dtests=enabled
	@ninja -C $(BUILD) --quiet
	@LAPSE_BUILD_PLAIN=$(abspath $(BUILD)) tests/run $(BUILD) --quick

test: setup-test all sanitized threads
	@LAPSE_BUILD_PLAIN=$(abspath $(BUILD)) LAPSE_BUILD_TSAN=$(abspath $(THREADS)) tests/run $(SANITIZED)

# Servers that are several, and poolers before them, at length: `make test` has a part of it.
test-cluster: setup-cluster all sanitized threads
	@LAPSE_CLUSTER=1 LAPSE_BUILD_PLAIN=$(abspath $(BUILD)) LAPSE_BUILD_TSAN=$(abspath $(THREADS)) \
	    tests/run $(SANITIZED) cluster

# What is tested on MariaDB, on a MySQL that is unpacked for it (scripts/mysql).
MYSQL_AT ?= build-mysql
MYSQL_SUITES = cluster/mysql_group suite/bounds suite/check suite/fuse suite/history suite/init suite/input suite/keys suite/lease suite/newest \
    suite/own suite/owned suite/rows suite/suggested suite/sweep suite/times
test-mysql: setup-test all sanitized
	@scripts/mysql $(MYSQL_AT)
	@LAPSE_MYSQL=$(abspath $(MYSQL_AT)) LAPSE_TEST_ENGINES=Mariadb tests/run $(SANITIZED) $(MYSQL_SUITES)

# lapse beside the limit and beside what people use, as ratios in one run; table and plots go to docs/bench.
# BENCH="--rows 100000 sweep-fk" narrows it. What could not be installed is said to take no part.
bench: setup-test all
	@scripts/setup bench || true
	@LAPSE=$(abspath $(BUILD)/lapse) /usr/bin/python3 -B bench/bench.py --out docs/bench $(BENCH)

# What the program itself knows better: the reference, and what the examples of the pages print.
docs: setup-test all
	@LAPSE=$(abspath $(BUILD)/lapse) /usr/bin/python3 -B tests/docs/test_docs.py --write
	@LAPSE=$(abspath $(BUILD)/lapse) /usr/bin/python3 -B tests/contracts/test_pages.py --write

setup-demo setup-test setup-cluster: setup-build
setup-build setup-demo setup-test setup-cluster:
	@scripts/setup $(@:setup-%=%)

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf $(BUILD) $(SANITIZED) $(THREADS) build-node
