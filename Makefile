# make            what there is
# make test       everything that must hold, as CI runs it
# make install    the release build to $(DESTDIR)$(PREFIX)/bin

SWIFT ?= $(shell command -v swift || echo /opt/swift/usr/bin/swift)
PREFIX ?= /usr/local
DESTDIR ?=
# Compilations at once; empty: as many as there are cores.
JOBS ?=
jobs = $(if $(JOBS),-j $(JOBS))

.PHONY: help build docs test test-page setup check launcher torture format install install-service uninstall bench-smoke clean

help:
	@sed -n 's/^## //p' Makefile

## build        a release build: .build/launcher/release/tow
build:
	@./tow --version >/dev/null

## test         setup, format, house rules, launcher, build, all tests
test: setup check launcher
	$(SWIFT) build --build-tests $(jobs)
	@SWIFT='$(SWIFT)' scripts/render-docs
	@scripts/run-tests

## docs         the library's documentation, after a build: .build/docs
docs:
	@SWIFT='$(SWIFT)' scripts/render-docs

## setup        install what the tests need (Debian)
setup:
	@scripts/setup-tests

## test-page    the web page in a real browser (chromium; a quarter of an hour)
test-page:
	@scripts/setup-tests page
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

## torture      many more rounds of kills, faults, parsers; sanitizers (about an hour)
torture: setup
	@SWIFT='$(SWIFT)' JOBS='$(JOBS)' scripts/torture

## format       rewrite the sources in the house's format
format:
	$(SWIFT) format --in-place --parallel --recursive Package.swift Sources Tests Examples

## install      put tow into $(DESTDIR)$(PREFIX)/bin
install: build
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 0755 .build/launcher/release/tow '$(DESTDIR)$(PREFIX)/bin/tow'

## install-service  put towd there too; its build takes some minutes
install-service: install
	$(SWIFT) build -c release --product towd
	install -m 0755 .build/release/towd '$(DESTDIR)$(PREFIX)/bin/towd'

## uninstall    take them away again
uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/tow' '$(DESTDIR)$(PREFIX)/bin/towd'

## bench-smoke  2 GiB over loopback, side by side with curl; fails if tow needs 15 % more CPU
bench-smoke: build
	@scripts/bench-smoke

## clean        remove all builds
clean:
	rm -rf .build
