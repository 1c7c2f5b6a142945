# `make deb`: the packages, in build/deb, and lintian's judgement (debian/mkdeb).
deb:
	debian/mkdeb $(BUILD)/deb
