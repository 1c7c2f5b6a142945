# debian.sh - where this machine gets Debian packages from, for building roots.
# Sourced by tests/lab/mkroot.sh and tests/vm/mk*.sh.

# debian_sources RELEASE: one-line entries of the machine's own apt, in either
# file format. Needs nothing fetched. A machine whose lists were never fetched
# does not know the origin of an entry yet: its component decides. Another
# release than the machine's own comes from the same mirrors.
debian_sources() { # RELEASE
	key=
	for f in /usr/share/keyrings/debian-archive-keyring.gpg \
		 /usr/share/keyrings/debian-archive-keyring.pgp; do
		[ ! -e "$f" ] || { key="[signed-by=$f] "; break; }
	done
	apt-get indextargets --format \
		'$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)' \
		'Identifier: Packages' |
	awk -F'|' -v rel="$1" -v key="$key" \
		-v own="$(. /etc/os-release && echo "$VERSION_CODENAME")" '
		function entries(of,	i, n, f, line, had) {
			for (i = 1; i <= NR; i++) {
				n = split(row[i], f, "|")
				if (f[3] !~ "^" of "(-updates|-security)?$")
					continue
				sub("^" of, rel, f[3])
				line = "deb " key f[2] " " f[3] " main"
				if (!seen[line]++) print line
				had = 1
			}
			return had
		}
		{ row[NR] = "" }
		$4 == "main" && $1 ~ /^(Debian|\$\(ORIGIN\))$/ { row[NR] = $0 }
		END { if (!entries(rel)) entries(own) }'
}

# debian_apt_conf: proxy and retry settings of the machine's own apt.
debian_apt_conf() {
	apt-config dump |
		grep -E '^Acquire::(https?|Retries|Force|Check-|Queue)' || :
}

# debian_root RELEASE VARIANT DIR PACKAGES [OPTION...]: a root in DIR/root, by
# mmdebstrap (OPTIONs are its own), without manuals and translations. What it
# needs and what it says stay in DIR. Prints why, if it cannot.
debian_root() {
	command -v mmdebstrap >/dev/null ||
		{ echo "mmdebstrap is not installed"; return 1; }
	debian_sources "$1" >"$3/sources"
	[ -s "$3/sources" ] ||
		{ echo "apt on this machine has no Debian entry"; return 1; }
	debian_apt_conf >"$3/apt.conf"
	debian_release=$1 debian_variant=$2 debian_dir=$3 debian_list=$4
	shift 4
	mmdebstrap --quiet --mode=root --variant="$debian_variant" \
		--aptopt="$debian_dir/apt.conf" \
		--aptopt='APT::Install-Recommends "false"' \
		--aptopt='Acquire::Languages "none"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$(echo $debian_list | tr ' ' ,)" "$@" \
		"$debian_release" "$debian_dir/root" "$debian_dir/sources" \
		>"$debian_dir/log" 2>&1 ||
		{ tail -n 20 "$debian_dir/log"; return 1; }
}
