# `make deb`: the packages, in build/deb, and lintian's judgement (debian/mkdeb).
# The package tests use ssh to the lab's nodes, and ask mkosi.
DEPS_TEST += openssh-client mkosi

deb:
	debian/mkdeb $(BUILD)/deb
