# A thin front for scripts/; see CONTRIBUTING.md.
.PHONY: demo build test bench install docs

PREFIX ?= /usr/local

demo:
	./scripts/demo
build:
	./scripts/build
test:
	./scripts/test
bench:
	./scripts/bench
install: build
	cmake --install build/release --prefix $(PREFIX)
docs: build
	./scripts/docs
