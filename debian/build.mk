# `make deb`: the packages, in build/deb, and lintian's judgement (debian/mkdeb).
# The package tests use ssh to the lab's nodes, and ask mkosi and autopkgtest.
DEPS_TEST += openssh-client mkosi autopkgtest

deb:
	debian/mkdeb $(BUILD)/deb
