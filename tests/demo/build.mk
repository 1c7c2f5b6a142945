# `make demo`: three bare machines become a verified cluster (tests/demo/demo).
demo: deps
	$(MAKE) all $(BUILD)/tests/k3s
	BUILD=$(BUILD) tests/demo/demo
demo-clean:
	BUILD=$(BUILD) tests/demo/demo clean
