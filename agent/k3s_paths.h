/*
 * k3s_paths.h - where k3s lives on a node (K3S-CONTRACT 2.4). Each is
 * relative to the node's root, which is "" in production.
 */
#pragma once

#define K3S_UNIT "k3s.service"
#define K3S_UNIT_FILE "/etc/systemd/system/k3s.service"
#define K3S_BINARY "/usr/local/bin/k3s"
#define K3S_CONFIG_DIR "/etc/rancher/k3s"
#define K3S_CONFIG K3S_CONFIG_DIR "/config.yaml"
#define K3S_DROPIN_DIR K3S_CONFIG_DIR "/config.yaml.d"
#define K3S_TOKEN_FILE K3S_CONFIG_DIR "/garboard-token"
#define K3S_DATA "/var/lib/rancher/k3s"
#define K3S_WAL K3S_DATA "/server/db/etcd/member/wal"
#define K3S_TLS K3S_DATA "/server/tls"
#define K3S_SERVER_TOKEN K3S_DATA "/server/token"
#define K3S_MANIFESTS K3S_DATA "/server/manifests"
#define K3S_IMAGES K3S_DATA "/agent/images"

#define K3S_PATH_MAX 512
