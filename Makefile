# make            what there is
# make test       everything that must hold, as CI runs it
# make install    the release build to $(DESTDIR)$(PREFIX)/bin

SWIFT ?= $(shell command -v swift || echo /opt/swift/usr/bin/swift)
PREFIX ?= /usr/local
DESTDIR ?=
# Options for the benchmark, as `Benchmarks/bench.py --help` tells them.
BENCH ?=
# Compilations at once; empty: as many as there are cores.
JOBS ?=
jobs = $(if $(JOBS),-j $(JOBS))
# As the launcher links, whose build directory the benchmark's programs share.
lld = $(if $(wildcard $(dir $(realpath $(shell command -v $(SWIFT))))ld.lld),-Xswiftc -use-ld=lld)

.PHONY: help build docs test test-page setup check launcher test-install build-service torture format install install-service uninstall deb bench-smoke bench bench-quick bench-full bench-programs clean

help:
	@sed -n 's/^## //p' Makefile

## build        a release build: .build/launcher/release/tow
build:
	@./tow --version >/dev/null

## test         setup, format, house rules, launcher, build, all tests
test: setup check launcher test-install
	$(SWIFT) build --build-tests $(jobs)
	@SWIFT='$(SWIFT)' scripts/render-docs
	@scripts/test-deb
	@scripts/run-tests

## docs         the library's documentation, after a build: .build/docs
docs:
	@SWIFT='$(SWIFT)' scripts/render-docs

## setup        install what the tests need (Debian)
setup:
	@scripts/setup-tests

## test-page    of the tests, those of the web page in a real browser and of the API's document alone
test-page: setup
	$(SWIFT) build --build-tests $(jobs)
	@scripts/run-tests WebPageTests

## check        format and house rules, without building
check:
	$(SWIFT) format lint --strict --parallel --recursive Package.swift Sources Tests Examples
	@scripts/house --self-test
	@scripts/house

## launcher     ./tow builds from nothing and runs from anywhere
launcher:
	@scripts/test-launcher

## test-install what 'make install' does, in a directory of its own
test-install: launcher
	@scripts/test-install

## torture      many more rounds of kills, faults, parsers; sanitizers (about an hour)
torture: setup
	@SWIFT='$(SWIFT)' JOBS='$(JOBS)' scripts/torture

## format       rewrite the sources in the house's format
format:
	$(SWIFT) format --in-place --parallel --recursive Package.swift Sources Tests Examples

## install      put tow into $(DESTDIR)$(PREFIX)/bin; its manual, and completions for bash, zsh and fish, into share
install: build
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 0755 .build/launcher/release/tow '$(DESTDIR)$(PREFIX)/bin/tow'
	@scripts/install-shared '$(DESTDIR)$(PREFIX)/share' site-functions .build/launcher/release/tow

## install-service  put towd there too; its build takes some minutes
install-service: install build-service
	install -m 0755 .build/release/towd '$(DESTDIR)$(PREFIX)/bin/towd'
	@scripts/install-shared '$(DESTDIR)$(PREFIX)/share' site-functions .build/release/towd

# With Swift's libraries within: the programs need nothing that Debian has not.
build-service:
	$(SWIFT) build -c release --product towd --static-swift-stdlib $(jobs)

## uninstall    take them away again
uninstall:
	@for name in tow towd; do rm -f "$(DESTDIR)$(PREFIX)/bin/$$name" \
	    "$(DESTDIR)$(PREFIX)/share/man/man1/$$name.1" \
	    "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$name" \
	    "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$name" \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$name.fish"; done

## deb          a Debian package with both, in .build/deb; the build of towd takes some minutes
deb: build build-service
	@scripts/build-deb .build/launcher/release/tow .build/release/towd \
	    .build/deb/towline_$$(dpkg --print-architecture).deb

## bench-smoke  2 GiB over loopback, side by side with curl; fails if tow needs 15 % more CPU
bench-smoke: build
	@scripts/bench-smoke

## bench        tow and its peers side by side, in about seven minutes: a table, and results.json in .build/bench
bench: bench-programs
	@Benchmarks/bench.py $(BENCH)

## bench-quick  a row of each kind, twice, in under three minutes
bench-quick: bench-programs
	@Benchmarks/bench.py --quick $(BENCH)

## bench-full   the same with every row, peer and size (an hour or two); BENCH='--rows delay*' for some
bench-full: bench-programs
	@Benchmarks/bench.py --full $(BENCH)

bench-programs: build
	@scripts/setup-tests bench
	$(SWIFT) build --scratch-path .build/launcher -c release --product shaping-proxy --disable-default-traits \
	    --static-swift-stdlib -debug-info-format none $(lld) $(jobs)

## clean        remove all builds
clean:
	rm -rf .build
