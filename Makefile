# Garboard. `make deps` installs what Debian has to give; `make help` lists
# the targets. Everything built goes below $(BUILD).
VERSION := 0.1.0
BUILD ?= build
CC ?= gcc
PREFIX ?= /usr
UNITDIR ?= $(PREFIX)/lib/systemd/system
DESTDIR ?=
SAN ?=

CPPFLAGS := -D_GNU_SOURCE -I. -I$(BUILD)/gen -DGARBOARD_VERSION='"$(VERSION)"'
WARN := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes \
	-Wmissing-prototypes -Wformat=2 -Wundef -Wvla -Wwrite-strings -Werror -Wno-format-truncation
HARDEN := -fstack-protector-strong -fstack-clash-protection -fPIE
ifeq ($(SAN),)
HARDEN += -D_FORTIFY_SOURCE=2
else
HARDEN += -fsanitize=$(SAN) -fno-omit-frame-pointer
endif
CFLAGS := -std=c17 -O2 -g $(WARN) $(HARDEN) $(EXTRA_CFLAGS)
LDFLAGS := -pie -Wl,-z,relro,-z,now,--as-needed $(if $(SAN),-fsanitize=$(SAN)) $(EXTRA_LDFLAGS)

DEPS := build-essential pkg-config git ca-certificates clang clang-tidy \
	clang-format cppcheck mandoc protobuf-c-compiler libprotobuf-c-dev \
	libmnl-dev libnftnl-dev libsystemd-dev libssl-dev libyaml-dev \
	libsqlite3-dev libcurl4-openssl-dev libjansson-dev libcmocka-dev libblkid-dev
DEPS_TEST := systemd mmdebstrap dbus-daemon qemu-system-x86 qemu-utils e2fsprogs mount iproute2 \
	nftables procps libcap2-bin openssl openvpn dpkg-dev debhelper lintian \
	python3-minimal python3-yaml python3-cryptography perl valgrind

# ---- sources by name, per archive; a program is its main.c and archives ----
COMMON := backoff change clock fault file fnv ip log parse put strlist trim
PROTO := bundle desired desired_wire envelope frame keys order order_allow \
	order_table pki pki_read seal statement up up_table wire wire_read \
	wire_write
TLS := tls tls_ctx
SPEC := arena build_baseline build_cluster build_egress check_baseline \
	check_cluster check_egress check_k3s check_later check_network cilium \
	defaults derive field field_types items k3s_config keys_baseline \
	keys_cluster keys_egress keys_spec load placeholder print problem query \
	reserved rules yaml yaml_tree yaml_write
AGENT := res/items res/registry rate unit engine
# what the agent remembers, whom it obeys, and k3s
AGENT += blobs child facts forwarding k3s k3s_config k3s_files k3s_lines k3s_wipe k3s_work \
	lease neigh_probe orders orders_blob orders_k3s orders_node orders_table \
	orders_trust power state state_fields state_results statefile upward
# verbs, the socket of the link, reports, status
AGENT += cmd cmd_disarm cmd_explain cmd_killswitch_log lock cmd_converge cmd_converge_go cmd_reset_identity cmd_run cmd_status converge converge_go json \
	link_sock report session sockets status status_client status_sock uncovered verdict
# the host's own resources: sysctl, modules, timezone, iscsid; D-Bus
AGENT += confdirs kept ours record rootpath stamps wake res/sysctl res/sysctl_files res/sysctl_plan res/sysctl_glob res/sysctl_held res/sysctl_unit \
	kmod kmod_options res/modules res/modules_plan \
	res/timezone res/timezone_plan res/timezone_read \
	res/iscsid res/iscsid_plan res/iscsid_read res/swap res/swap_plan res/swap_read unitname hardware smbios disk/note disk/probe res/mounts res/mounts_plan res/mounts_read
# netlink, kill-switch, routing
AGENT += nl/conntrack nl/nl_notify nl/nl_reply nl/nl_sock nl/rtnl nl/rtnl_index nl/rtnl_lookup nl/rtnl_msg nl/rtnl_text nl/tc explain/explain explain/fib explain/filter explain/look explain/packet $(addprefix ledger/,ledger record report stood watch)
AGENT += bus/bus bus/systemd1 bus/systemd1_unit bus/timedate1
AGENT += nl/nft nl/nft_batch nl/nft_diff nl/nft_expr nl/nft_model nl/nft_msg \
	armed armed_text lockdown_file lockdown_keep trial res/killswitch res/killswitch_plan \
	res/killswitch_tables res/routing res/routing_networkd res/routing_plan res/routing_record \
	res/routing_steps res/routing_want
# the early program; of the agent's archive it takes only what it calls
AGENT += lockdown/policy lockdown/stand lockdown/tables
LINK := agent_conn config cred dial link stream streams tls_session
COORD := addon ask ask_servers bringup memory_rule twins cluster cni cni_manifest desire egress egress_policy founding gate k3s_server kube kube_read kubeconfig manifests members plan_digest progress sequencer vip wipe yaml_out \
	steps/preflight steps/baseline steps/founder steps/joiners steps/kubevip \
	steps/cilium steps/verify steps/registry
# the server part and the command line
COORD += store store_schema store_nodes store_enroll store_log journal signer leaf \
	conn fleet session dispatch enroll enroll_rules machine ssh stream server serve \
	json_bytes control control_ops control_client control_calls control_spawn \
	$(addprefix cli/,options target output verbs init serve spec enroll enroll_ssh bundle \
	version node node_json status up wipe kubeconfig)
PROGRAMS := garboard-agent garboard-agentd garboard-link garboard-lockdown garboard-disk garboard

LIBS_common :=
# libcrypto comes first: its own 4,000 symbols are looked up in this order.
LIBS_proto := -lcrypto -lprotobuf-c
LIBS_tls := -lssl -lcrypto
LIBS_spec := -lyaml
LIBS_agent := -lsystemd -lmnl -lnftnl
LIBS_coord := -lsystemd -lsqlite3 -lcurl -ljansson

ARCHIVES := common proto tls spec agent link coord
objs = $(addprefix $(BUILD)/,$(addsuffix .o,$(1)))
OBJ_common := $(call objs,$(addprefix common/,$(COMMON)))
OBJ_proto := $(call objs,$(addprefix proto/,$(PROTO))) $(BUILD)/gen/garboard.pb-c.o
OBJ_tls := $(call objs,$(addprefix proto/,$(TLS)))
OBJ_spec := $(call objs,$(addprefix spec/,$(SPEC)))
OBJ_agent := $(call objs,$(addprefix agent/,$(AGENT)))
OBJ_link := $(call objs,$(addprefix agent/link/,$(LINK)))
OBJ_coord := $(call objs,$(addprefix coordinator/,$(COORD)))
lib = $(patsubst %,$(BUILD)/lib%.a,$(1))

TESTS_UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
# netns programs share world.c and run by tests/netns/NAME.t
TESTS_NETNS := $(addprefix $(BUILD)/tests/netns/,explain flows glance killswitch leak ledger lockdown routing sysctl)

.PHONY: all help deps demo demo-clean check check-unit check-san check-netns check-node \
	check-vm check-fleet check-long lint lint-fast install clean tests bench deb
all: $(addprefix $(BUILD)/,$(PROGRAMS)) $(call lib,$(ARCHIVES))

help:
	@echo "targets: all deps deb demo bench bench-compare check check-{unit,san,netns,node,vm,fleet,long} lint install clean"

# The front: unreached.o stands for libsystemd, which is not linked.
$(BUILD)/garboard-agent: $(call objs,agent/front/main agent/front/unreached) $(call lib,agent spec proto common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ -lmnl -lnftnl $(LIBS_spec)
# garboard-agentd must never link libssl: it has no business with TLS.
$(BUILD)/garboard-agentd: $(BUILD)/agent/main.o $(call lib,agent spec proto common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_proto) $(LIBS_agent) $(LIBS_spec)
$(BUILD)/garboard-link: $(BUILD)/agent/link/main.o $(call lib,link tls proto common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_proto) $(LIBS_tls) -lsystemd
$(BUILD)/garboard-lockdown: $(BUILD)/agent/lockdown/main.o $(call lib,agent proto common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ -lmnl -lnftnl
$(BUILD)/garboard: $(BUILD)/coordinator/main.o $(call lib,coord spec tls proto common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_coord) $(LIBS_tls) $(LIBS_spec) $(LIBS_proto)

define archive
$(BUILD)/lib$(1).a: $$(OBJ_$(1))
	@mkdir -p $$(@D)
	@rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach a,$(ARCHIVES),$(eval $(call archive,$(a))))

$(BUILD)/%.o: %.c | $(BUILD)/gen/garboard.pb-c.h
	@mkdir -p $(@D)
	@echo "  CC $<"; $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/gen/garboard.pb-c.o: $(BUILD)/gen/garboard.pb-c.c
	@echo "  CC $<"; $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/gen/garboard.pb-c.c $(BUILD)/gen/garboard.pb-c.h &: proto/garboard.proto
	@mkdir -p $(BUILD)/gen
	@protoc-c --proto_path=proto --c_out=$(BUILD)/gen proto/garboard.proto
LINK_TEST = @echo "  LD $@"; $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $(filter %.c,$^) $(LDFLAGS) \
	-Wl,--start-group $(call lib,$(ARCHIVES)) -Wl,--end-group -lcmocka $(LIBS_coord) $(LIBS_disk) \
	$(LIBS_agent) $(LIBS_tls) $(LIBS_spec) $(LIBS_proto)
$(BUILD)/tests/%: tests/unit/%.c $(call lib,$(ARCHIVES)) | $(BUILD)/gen/garboard.pb-c.h
	@mkdir -p $(@D)
	$(LINK_TEST)
$(BUILD)/tests/netns/%: tests/netns/%.c tests/netns/world.c $(call lib,$(ARCHIVES))
	@mkdir -p $(@D)
	$(LINK_TEST)
tests: $(TESTS_UNIT) $(TESTS_NETNS)

deps:
	apt-get -o DPkg::Lock::Timeout=600 update
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -y \
		--no-install-recommends install $(DEPS) $(DEPS_TEST)

# The last line of each level, and of `check`, is prove's own summary.
PROVE := CMOCKA_MESSAGE_OUTPUT=TAP BUILD=$(BUILD) prove --failures
check: deps
	$(MAKE) all tests lint
	$(MAKE) BUILD=$(BUILD)/san SAN=address,undefined tests
	$(MAKE) deb
	CMOCKA_MESSAGE_OUTPUT=TAP BUILD=$(BUILD) tests/prove-all
check-unit: all tests
	$(PROVE) -e '' $(TESTS_UNIT)
check-san:
	$(MAKE) BUILD=$(BUILD)/san SAN=address,undefined check-unit
check-netns: all tests
	$(PROVE) tests/netns/*.t
check-node: all tests deb
	$(PROVE) tests/node/*.t
check-vm: all deb
	$(PROVE) tests/vm/*.t
# Everything at real intervals and every pair of faults; takes hours.
check-long: check
	GARBOARD_LONG=1 $(MAKE) check-netns check-node check-vm check-fleet

lint-fast:
	tests/lint/includes.sh
	tests/lint/sizes.sh
	tests/lint/words.sh
lint: lint-fast all
	tests/lint/headers.sh "$(CC) $(filter-out -DGARBOARD_VERSION=%,$(CPPFLAGS)) -std=c17"
	tests/lint/links.sh $(BUILD)
	tests/lint/cppcheck.sh
	tests/lint/tidy.sh "$(filter-out -DGARBOARD_VERSION=%,$(CPPFLAGS))"
	tests/lint/man.sh

include agent/disk/build.mk agent/metrics/build.mk tests/netns/build.mk tests/standin/build.mk tests/fleet/build.mk tests/fuzz/build.mk tests/bench/build.mk debian/build.mk tests/demo/build.mk

D := $(DESTDIR)$(PREFIX)
install: all
	install -D -m 755 $(BUILD)/garboard $D/bin/garboard
	install -D -m 755 $(BUILD)/garboard-agent $D/sbin/garboard-agent
	install -D -m 755 -t $D/lib/garboard $(BUILD)/garboard-agentd $(BUILD)/garboard-link $(BUILD)/garboard-disk
	install -D -m 755 $(BUILD)/garboard-lockdown $D/sbin/garboard-lockdown
	install -D -m 644 -t $(DESTDIR)$(UNITDIR) units/*.service units/*.socket
	install -D -m 644 -t $D/lib/sysusers.d units/sysusers.d/garboard.conf
	install -D -m 644 -t $D/lib/tmpfiles.d units/tmpfiles.d/*.conf
	install -D -m 644 -t $(DESTDIR)/etc/iproute2/rt_protos.d units/rt_protos.d/garboard.conf
	for m in $(wildcard man/*.[1-8]); do \
		install -D -m 644 $$m $D/share/man/man$${m##*.}/$${m##*/}; done

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -path '*/deb' -prune -o -type f -name '*.d' -print 2>/dev/null)
