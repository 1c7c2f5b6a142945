# debian.sh - where this machine gets Debian packages from, for building roots.
# Sourced by tests/lab/mkroot.sh and tests/vm/mkguest.sh.

# debian_sources RELEASE: one-line entries of the machine's own apt, in either
# file format. Needs nothing fetched. A machine whose lists were never fetched
# does not know the origin of an entry yet: its component decides.
debian_sources() { # RELEASE
	key=
	for f in /usr/share/keyrings/debian-archive-keyring.gpg \
		 /usr/share/keyrings/debian-archive-keyring.pgp; do
		[ ! -e "$f" ] || { key="[signed-by=$f] "; break; }
	done
	apt-get indextargets --format \
		'$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)' \
		'Identifier: Packages' |
	awk -F'|' -v rel="$1" -v key="$key" '
		$4 != "main" || $1 !~ /^(Debian|\$\(ORIGIN\))$/ { next }
		$3 == rel || $3 == rel "-updates" || $3 == rel "-security" {
			line = "deb " key $2 " " $3 " main"
			if (!seen[line]++) print line
		}'
}

# debian_apt_conf: proxy and retry settings of the machine's own apt.
debian_apt_conf() {
	apt-config dump |
		grep -E '^Acquire::(https?|Retries|Force|Check-|Queue)' || :
}
