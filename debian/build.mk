# `make deb`: the packages, in build/deb, and lintian's judgement (debian/mkdeb).
# The package tests use ssh to the lab's nodes.
DEPS_TEST += openssh-client

deb:
	debian/mkdeb $(BUILD)/deb
