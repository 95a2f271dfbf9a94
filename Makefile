# walshadow: one non-recursive Makefile.  Sources are found by folder: every cmd/NAME.c is a tool
# linked with build/libws.a, every tests/unit/*.c a cmocka program, every tests/fuzz/*.c a parser
# target whose corpus replays in `make check`.
O            ?= build
PREFIX       ?= /usr/local
DESTDIR      ?=
CC           ?= gcc
PKG_CONFIG   ?= pkg-config
PKGS         := libpq zlib liblz4 libzstd libcurl popt lmdb
CFLAGS       ?= -O2 -g
CSTD         := -std=c11 -D_GNU_SOURCE
WARN         := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
                -Wformat=2 -Wvla -Wundef
PARSE_WARN   := -Wconversion -Wno-sign-conversion
ifdef DEVELOPER
WARN         += -Werror
endif
PKG_CFLAGS   := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS     := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)
VERSION      := $(shell cat VERSION)
ALL_CFLAGS    = $(CSTD) $(WARN) $(CFLAGS) -I. -Iinclude $(PKG_CFLAGS) -DWS_VERSION='"$(VERSION)"'

# One short line a step; V=1 shows the commands.
RUN           = $(if $(V),,@printf '  %s %s\n' $(1) $@ && )

LIB_SRC      := $(sort $(wildcard lib/*/*.c))
CMD_SRC      := $(sort $(wildcard cmd/*.c))
UNIT_SRC     := $(sort $(wildcard tests/unit/*.c))
LIB_OBJ      := $(LIB_SRC:%.c=$(O)/%.o)
TOOLS        := $(CMD_SRC:cmd/%.c=$(O)/bin/%)
SCRIPTS      := $(patsubst cmd/%,$(O)/bin/%,$(wildcard cmd/walshadow*))
UNIT         := $(UNIT_SRC:tests/unit/%.c=$(O)/unit/%)
PROG         := $(patsubst tests/prog/%.c,$(O)/prog/%,$(sort $(wildcard tests/prog/*.c)))
FUZZ_SRC     := $(sort $(wildcard tests/fuzz/*.c))
MAN          := $(sort $(wildcard man/*.[157]))
FUZZ_TIME    ?= 60

.PHONY: all pgext unit clean deps check check-build check-run lint lint-gcc lint-clang fuzz fuzz-build fuzz-corpus \
        replay bench soak soak-failover cov demo install uninstall dist
all: $(TOOLS) $(SCRIPTS) $(O)/bin/ws-chdb

$(O)/libws.a: $(LIB_OBJ)
	@rm -f $@
	$(call RUN,AR)$(AR) rcs $@ $^

# The folders that parse bytes get -Wconversion.
$(O)/lib/wal/%.o $(O)/lib/heap/%.o $(O)/lib/change/%.o: WARN += $(PARSE_WARN)

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(call RUN,CC)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/bin/%: $(O)/cmd/%.o $(O)/libws.a
	@mkdir -p $(@D)
	$(call RUN,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lpthread

$(SCRIPTS): $(O)/bin/%: cmd/%
	@mkdir -p $(@D)
	install -m 755 $< $@

$(O)/bin/ws-chdb: $(O)/contrib/chdb/ws-chdb.o
	@mkdir -p $(@D)
	$(call RUN,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ldl

# Programs that tests and benches use; not installed.
$(O)/prog/%: $(O)/tests/prog/%.o $(O)/libws.a
	@mkdir -p $(@D)
	$(call RUN,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lpthread

$(O)/unit/%: $(O)/tests/unit/%.o $(O)/libws.a
	@mkdir -p $(@D)
	$(call RUN,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lcmocka -lpthread

# The oracle, a PostgreSQL module, for every major whose server headers are at hand (tests/rig/headers);
# on a system with PostgreSQL's own development files contrib/pgext/Makefile does it by PGXS.
PGEXT_MAJORS ?= 16 17 18
PGEXT_SRC    := $(sort $(wildcard contrib/pgext/*.c))
PGEXT        := $(PGEXT_MAJORS:%=$(O)/pgext/%/walshadow_oracle.so)
PGEXT_CFLAGS  = -O2 -g -std=gnu11 -fPIC -fvisibility=hidden -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter \
                -Wno-sign-compare -Wno-missing-field-initializers $(if $(DEVELOPER),-Werror)

pgext:
	@for m in $(PGEXT_MAJORS); do \
		if tests/rig/headers $$m >/dev/null; then \
			$(MAKE) --no-print-directory $(O)/pgext/$$m/walshadow_oracle.so || exit 1; \
		else echo "  pgext: no server headers of PostgreSQL $$m here: not built for it"; fi; done

$(O)/pgext/%/walshadow_oracle.so: $(PGEXT_SRC) contrib/pgext/oracle.h
	@mkdir -p $(@D)
	$(call RUN,MODULE)dir=$$(tests/rig/headers $*) || { echo "no server headers of PostgreSQL $*" >&2; exit 1; }; \
		$(CC) $(PGEXT_CFLAGS) -isystem $$dir -shared -o $@ $(PGEXT_SRC)

# Types whose output functions misbehave, for its test.
$(O)/pgext/%/oracle_test.so: tests/prog/pgext/oracle_test.c
	@mkdir -p $(@D)
	$(call RUN,MODULE)dir=$$(tests/rig/headers $*) || { echo "no server headers of PostgreSQL $*" >&2; exit 1; }; \
		$(CC) $(PGEXT_CFLAGS) -isystem $$dir -shared -o $@ $<

unit: $(UNIT)
	@set -e; for t in $(UNIT); do $$t; done

# Debian packages and test servers.  What needs them runs in a make of its own, since this one has
# asked pkg-config already.
deps:
	@scripts/deps

check: deps
	@$(MAKE) --no-print-directory check-build
	@O=$(O) scripts/check $(TESTS)

PRELOAD := $(patsubst tests/prog/preload/%.c,$(O)/prog/%.so,$(wildcard tests/prog/preload/*.c))

# What tests load into tools.
$(O)/prog/%.so: tests/prog/preload/%.c
	@mkdir -p $(@D)
	$(call RUN,MODULE)$(CC) $(CFLAGS) $(WARN) -fPIC -shared -o $@ $< -ldl

check-build: all $(UNIT) $(PROG) $(PRELOAD) replay $(PGEXT) $(PGEXT:%/walshadow_oracle.so=%/oracle_test.so)

# Fuzz targets.  Their library is built a second time: with gcc's sanitizers to run corpora
# without a fuzzer, with clang's libFuzzer to look for more (FUZZ_TIME seconds a target).
SAN          := -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all
REPLAY       := $(FUZZ_SRC:tests/fuzz/%.c=$(O)/replay/%)
FUZZ         := $(FUZZ_SRC:tests/fuzz/%.c=$(O)/fuzz/%)
REPLAY_OBJ   := $(LIB_SRC:%.c=$(O)/san/%.o)
FUZZ_OBJ     := $(LIB_SRC:%.c=$(O)/fuzzer/%.o)
FUZZ_CC      ?= clang

replay: $(REPLAY)

$(O)/san/%.o: %.c
	@mkdir -p $(@D)
	$(call RUN,CC)$(CC) $(ALL_CFLAGS) -O1 $(SAN) -MMD -MP -c -o $@ $<

$(O)/san/libws.a $(O)/fuzzer/libws.a:
	@rm -f $@
	$(call RUN,AR)$(AR) rcs $@ $^
$(O)/san/libws.a: $(REPLAY_OBJ)
$(O)/fuzzer/libws.a: $(FUZZ_OBJ)

$(O)/replay/%: $(O)/san/tests/fuzz/%.o $(O)/san/tests/fuzz/replay/main.o $(O)/san/libws.a
	@mkdir -p $(@D)
	$(call RUN,LD)$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lpthread

$(O)/fuzzer/%.o: %.c
	@mkdir -p $(@D)
	$(call RUN,CC)$(FUZZ_CC) $(ALL_CFLAGS) -O1 $(SAN) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(O)/fuzz/%: $(O)/fuzzer/tests/fuzz/%.o $(O)/fuzzer/libws.a
	@mkdir -p $(@D)
	$(call RUN,LD)$(FUZZ_CC) $(CFLAGS) $(SAN) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lpthread

fuzz-build: $(FUZZ)

fuzz: fuzz-build
	@set -e; for f in $(FUZZ); do \
		n=$$(basename $$f); mkdir -p $(O)/fuzz-corpus/$$n tests/fuzz/corpus/$$n; \
		echo "fuzz: $$n for $(FUZZ_TIME) s"; \
		$$f -max_total_time=$(FUZZ_TIME) -max_len=65536 -print_final_stats=1 \
			-artifact_prefix=$(O)/fuzz-corpus/$$n- \
			$(O)/fuzz-corpus/$$n tests/fuzz/corpus/$$n; \
	done

# What `make fuzz` found into the corpora of the tree, as few files as reach the same code.
fuzz-corpus: fuzz-build
	@set -e; for f in $(FUZZ); do \
		n=$$(basename $$f); mkdir -p $(O)/fuzz-corpus/$$n tests/fuzz/corpus/$$n; \
		$$f -set_cover_merge=1 -max_len=4096 tests/fuzz/corpus/$$n $(O)/fuzz-corpus/$$n 2>&1 | \
			tail -n 1; \
	done

# Warnings as errors in two compilers, then everything that is no compiler.
lint: lint-gcc lint-clang
	@CC=$(CC) CFLAGS_ALL='$(ALL_CFLAGS)' scripts/lint

lint-gcc:
	@$(MAKE) --no-print-directory O=$(O)/lint-gcc CC=gcc DEVELOPER=1 lint-objects
lint-clang:
	@$(MAKE) --no-print-directory O=$(O)/lint-clang CC=clang DEVELOPER=1 lint-objects
.PHONY: lint-objects
lint-objects: $(LIB_OBJ) $(CMD_SRC:%.c=$(O)/%.o) $(UNIT_SRC:%.c=$(O)/%.o) $(FUZZ_SRC:%.c=$(O)/%.o) \
              $(PROG:$(O)/prog/%=$(O)/tests/prog/%.o) $(O)/contrib/chdb/ws-chdb.o \
              $(O)/tests/fuzz/replay/main.o

# Ratios measured on the same WAL in one run; fails past a limit.
bench: deps
	@$(MAKE) --no-print-directory all $(PROG) $(O)/pgext/17/walshadow_oracle.so
	@O=$(abspath $(O)) tests/bench/run

# The seeded workload with many seeds a major, and transactions of full size: hours.
SEEDS        ?= 200
soak: deps
	@$(MAKE) --no-print-directory check-build
	@O=$(O) WS_SEED=$${WS_SEED:-1} WS_SEEDS=$(SEEDS) WS_STEPS=$${WS_STEPS:-1500} WS_SCALE=full \
		WS_TIMEOUT=0 WS_IT_COMMAND_TIMEOUT=3600 WS_JOBS=1 \
		scripts/check tests/it/360-random.t tests/it/084-decode-xacts.t

# Chains of promotions at random moments, SEEDS of them from WS_SEED on, on each major.
soak-failover: deps
	@$(MAKE) --no-print-directory check-build
	@O=$(O) WS_FAILOVER_PARTS=chain WS_SEED=$${WS_SEED:-1} WS_SEEDS=$(SEEDS) WS_TIMEOUT=0 WS_JOBS=1 \
		scripts/check tests/it/400-failover.t

# Lines that the unit tests reach, as text and in $(O)/cov/html.
cov:
	@$(MAKE) --no-print-directory O=$(O)/cov CFLAGS='-O0 -g --coverage' LDFLAGS=--coverage unit
	@lcov --quiet --capture --directory $(O)/cov --output-file $(O)/cov/all.info --no-external \
		--base-directory .
	@lcov --quiet --extract $(O)/cov/all.info '*/lib/*' '*/cmd/*' --output-file $(O)/cov/lib.info
	@lcov --list $(O)/cov/lib.info
	@genhtml --quiet --output-directory $(O)/cov/html $(O)/cov/lib.info

# A source, a ClickHouse, the pipeline and a load; ONCE=1 stops everything at the end, STOP=1 what
# an earlier one left running.
demo: deps
	@$(MAKE) --no-print-directory all
	@O=$(O) scripts/demo $(if $(ONCE),--once) $(if $(STOP),--stop) $(DEMO_ARGS)

LIBEXEC      := $(filter-out $(O)/bin/walshadow,$(SCRIPTS))
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/walshadow
	install -m 755 $(TOOLS) $(O)/bin/ws-chdb $(O)/bin/walshadow $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(LIBEXEC) $(DESTDIR)$(PREFIX)/libexec/walshadow
	set -e; for m in $(wildcard $(O)/pgext/*/walshadow_oracle.so); do \
		d=$(DESTDIR)$(PREFIX)/lib/walshadow/pgext/$$(basename $$(dirname $$m)); \
		install -d $$d; install -m 755 $$m $$d; done
	set -e; for m in $(MAN); do d=$(DESTDIR)$(PREFIX)/share/man/man$${m##*.}; \
		install -d $$d; install -m 644 $$m $$d; done
	install -d $(DESTDIR)$(PREFIX)/share/doc/walshadow
	install -m 644 $(wildcard *.md) LICENSE $(DESTDIR)$(PREFIX)/share/doc/walshadow

uninstall:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(notdir $(TOOLS)) ws-chdb walshadow)
	rm -rf $(DESTDIR)$(PREFIX)/libexec/walshadow $(DESTDIR)$(PREFIX)/lib/walshadow $(DESTDIR)$(PREFIX)/share/doc/walshadow
	set -e; for m in $(notdir $(MAN)); do \
		rm -f $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$$m; done

dist:
	@mkdir -p $(O)
	git archive --format=tar.gz --prefix=walshadow-$(VERSION)/ -o $(O)/walshadow-$(VERSION).tar.gz HEAD
	@echo $(O)/walshadow-$(VERSION).tar.gz

clean:
	rm -rf $(O)

-include $(shell find $(O) -name '*.d' 2>/dev/null)
.SECONDARY:
