# make            list all targets
# make test       run all checks and tests, as in continuous integration
# make install    install the release build into $(DESTDIR)$(PREFIX)/bin

SWIFT ?= $(shell command -v swift || echo /opt/swift/usr/bin/swift)
PREFIX ?= /usr/local
DESTDIR ?=
# Options for the benchmark; see `Benchmarks/bench.py --help`.
BENCH ?=
# Number of parallel compilations; empty: the number of cores.
JOBS ?=
jobs = $(if $(JOBS),-j $(JOBS))
# --notice: build a package or install even if the Swift packages differ from scripts/package-versions.
CHECK_PACKAGES ?=

.PHONY: help build docs test test-page setup check launcher test-install build-service service-packages deb-packages torture format install install-service uninstall deb bench-smoke bench bench-quick bench-full bench-programs clean

help:
	@sed -n 's/^## //p' Makefile

## build            build tow in release mode: .build/launcher/release/tow
build:
	@./tow --version >/dev/null

## test             run all checks and tests: setup, check, launcher, build, tests
test: setup check launcher test-install
	$(SWIFT) build --build-tests $(jobs)
	@scripts/check-packages --notice
	@SWIFT='$(SWIFT)' scripts/test-sanitized
	@SWIFT='$(SWIFT)' scripts/render-docs
	@SWIFT='$(SWIFT)' scripts/test-without-curl
	@scripts/test-deb
	@scripts/run-tests

## docs             generate the library documentation in .build/docs; needs a build
docs:
	@SWIFT='$(SWIFT)' scripts/render-docs

## setup            install the packages that the tests need (Debian)
setup:
	@scripts/setup-tests

## test-page        run only the tests of the web page (in a real browser) and of the API description
test-page: setup
	$(SWIFT) build --build-tests $(jobs)
	@scripts/run-tests WebPageTests

## check            check the format and the house rules, without a build
check:
	$(SWIFT) format lint --strict --parallel --recursive Package.swift Sources Tests Examples
	@scripts/house --self-test
	@scripts/house
	@scripts/check-packages --self-test

## launcher         test that ./tow builds itself and runs from any directory
launcher:
	@scripts/test-launcher

## test-install     test 'make install' and 'make uninstall' in a temporary directory
test-install: launcher
	@scripts/test-install

## torture          run the long tests: kills, faults, fuzzing, sanitizers (about an hour)
torture: setup
	@SWIFT='$(SWIFT)' JOBS='$(JOBS)' scripts/torture

## format           format the source files
format:
	$(SWIFT) format --in-place --parallel --recursive Package.swift Sources Tests Examples

## install          install tow, its manual and its shell completions in $(DESTDIR)$(PREFIX)
install: build
	@scripts/check-packages $(CHECK_PACKAGES)
	@scripts/check-linking .build/launcher/release/tow
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 0755 .build/launcher/release/tow '$(DESTDIR)$(PREFIX)/bin/tow'
	@scripts/install-shared '$(DESTDIR)$(PREFIX)/share' site-functions .build/launcher/release/tow

## install-service  install tow and towd; building towd takes some minutes
install-service: service-packages install build-service
	@scripts/check-packages $(CHECK_PACKAGES)
	@scripts/check-linking .build/release/towd
	install -m 0755 .build/release/towd '$(DESTDIR)$(PREFIX)/bin/towd'
	@scripts/install-shared '$(DESTDIR)$(PREFIX)/share' site-functions .build/release/towd

# The Swift libraries are linked statically: the programs need only libraries that Debian provides.
build-service: service-packages
	$(SWIFT) build -c release --product towd --static-swift-stdlib --disable-local-rpath -Xlinker -z -Xlinker now \
	    $$(scripts/c-hardening) $(jobs)

# First, so that a missing package is reported or installed before a build of minutes.
service-packages deb-packages:
	@scripts/build-packages $(@:-packages=)

## uninstall        remove the files of 'make install' and 'make install-service'
uninstall:
	@for name in tow towd; do rm -f "$(DESTDIR)$(PREFIX)/bin/$$name" \
	    "$(DESTDIR)$(PREFIX)/share/man/man1/$$name.1" \
	    "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$name" \
	    "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$name" \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$name.fish"; done

## deb              build a Debian package with tow and towd in .build/deb; takes some minutes
deb: deb-packages build build-service
	@scripts/check-packages $(CHECK_PACKAGES)
	@scripts/build-deb .build/launcher/release/tow .build/release/towd \
	    .build/deb/towline_$$(dpkg --print-architecture).deb

## bench-smoke      compare 2 GiB over loopback with curl; fails if tow uses over 15 % more CPU
bench-smoke: build
	@scripts/bench-smoke

## bench            compare tow with curl, wget, wget2, aria2 and axel (about seven minutes)
bench: bench-programs
	@Benchmarks/bench.py $(BENCH)

## bench-quick      run one benchmark of each kind, twice (under three minutes)
bench-quick: bench-programs
	@Benchmarks/bench.py --quick $(BENCH)

## bench-full       run all benchmarks at full size (one to two hours); BENCH='--rows delay*' selects some
bench-full: bench-programs
	@Benchmarks/bench.py --full $(BENCH)

bench-programs: build
	@scripts/setup-tests bench
	$(SWIFT) build --scratch-path .build/launcher -c release --product shaping-proxy --disable-default-traits \
	    --static-swift-stdlib --disable-local-rpath -Xlinker -z -Xlinker now $$(scripts/c-hardening) \
	    -debug-info-format none $(jobs)

## clean            remove all build output (.build)
clean:
	rm -rf .build
