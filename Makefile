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
PKG_CFLAGS   := $(shell $(PKG_CONFIG) --cflags $(PKGS))
PKG_LIBS     := $(shell $(PKG_CONFIG) --libs $(PKGS))
VERSION      := $(shell cat VERSION)
ALL_CFLAGS    = $(CSTD) $(WARN) $(CFLAGS) -I. -Iinclude $(PKG_CFLAGS) -DWS_VERSION='"$(VERSION)"'

LIB_SRC      := $(sort $(wildcard lib/*/*.c))
CMD_SRC      := $(sort $(wildcard cmd/*.c))
UNIT_SRC     := $(sort $(wildcard tests/unit/*.c))
LIB_OBJ      := $(LIB_SRC:%.c=$(O)/%.o)
TOOLS        := $(CMD_SRC:cmd/%.c=$(O)/bin/%)
SCRIPTS      := $(patsubst cmd/%,$(O)/bin/%,$(wildcard cmd/walshadow*))
UNIT         := $(UNIT_SRC:tests/unit/%.c=$(O)/unit/%)

.PHONY: all unit clean
all: $(TOOLS) $(SCRIPTS) $(O)/bin/ws-chdb

$(O)/libws.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

# The folders that parse bytes get -Wconversion.
$(O)/lib/wal/%.o $(O)/lib/heap/%.o $(O)/lib/change/%.o: WARN += $(PARSE_WARN)

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/bin/%: $(O)/cmd/%.o $(O)/libws.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lpthread

$(SCRIPTS): $(O)/bin/%: cmd/%
	@mkdir -p $(@D)
	install -m 755 $< $@

$(O)/bin/ws-chdb: $(O)/contrib/chdb/ws-chdb.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ldl

# Programs that tests and benches use; not installed.
$(O)/prog/%: $(O)/tests/prog/%.o $(O)/libws.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lpthread

$(O)/unit/%: $(O)/tests/unit/%.o $(O)/libws.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lcmocka -lpthread

unit: $(UNIT)
	@set -e; for t in $(UNIT); do $$t; done

clean:
	rm -rf $(O)

-include $(O)/contrib/chdb/ws-chdb.d $(LIB_OBJ:.o=.d) $(CMD_SRC:%.c=$(O)/%.d) $(UNIT_SRC:%.c=$(O)/%.d)
.SECONDARY:
