/*
 * order_allow.h - syntax and allow-lists of the texts in orders. Pure.
 * Inside proto/; order.h exports what others need.
 */
#pragma once

#include <stdbool.h>

bool allow_node_name(const char *text);		/* RFC 1123 label */
bool allow_version(const char *text);		/* "v1.36.4+k3s1" */
bool allow_san(const char *text);		/* address or DNS name */
bool allow_config_key(const char *text);
bool allow_endpoint(const char *text);		/* "addr:port" */
bool allow_uid(const char *text);		/* Kubernetes UID */
bool allow_hex64(const char *text);
bool allow_interface(const char *text);		/* device name */
bool allow_module(const char *text);
bool allow_sysctl_key(const char *text);
bool allow_timezone(const char *text);
bool allow_filesystem(const char *text);	/* "ext4" or "xfs" */
