#include "agent/k3s_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/k3s_config.h"
#include "agent/k3s_paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/parse.h"
#include "proto/keys.h"

#define SMALL_FILE_MAX 65536
#define DROPINS_MAX 64

static const char *under(const char *root, const char *path,
			 char buf[K3S_PATH_MAX])
{
	(void)snprintf(buf, K3S_PATH_MAX, "%s%s", root, path);
	return buf;
}

/* 1: written; 0: content and mode were right already. */
static int replace(const char *path, mode_t mode, const void *data,
		   size_t size, struct fault *f)
{
	_cleanup_free_ char *have = NULL;
	size_t have_size = 0;
	struct stat st;
	int r;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    (st.st_mode & 07777) == mode && st.st_size == (off_t)size &&
	    file_read(path, size, &have, &have_size, NULL) == 0 &&
	    memcmp(have, data, size) == 0)
		return 0;
	r = file_write(path, mode, data, size, f);
	return r < 0 ? r : 1;
}

static int make_dir(const char *root, const char *path, mode_t mode,
		    struct fault *f)
{
	char full[K3S_PATH_MAX];

	return file_mkdirs(under(root, path, full), mode, f);
}

/* ---- unit ---- */

int k3s_files_unit_is_ours(const char *root, bool *ret_ours)
{
	_cleanup_free_ char *text = NULL;
	char path[K3S_PATH_MAX];
	size_t size;
	int r;

	r = file_read(under(root, K3S_UNIT_FILE, path), SMALL_FILE_MAX, &text,
		      &size, NULL);
	if (r < 0)
		return r;
	*ret_ours = strcmp(text, k3s_unit_text(false)) == 0 ||
		    strcmp(text, k3s_unit_text(true)) == 0;
	return 0;
}

int k3s_files_write_unit(const char *root, bool agent, struct fault *f)
{
	const char *text = k3s_unit_text(agent);
	char path[K3S_PATH_MAX];
	bool ours = true;
	int r;

	(void)under(root, K3S_UNIT_FILE, path);
	r = k3s_files_unit_is_ours(root, &ours);
	if (r < 0 && r != -ENOENT)
		return fault_errno(f, r, path, "cannot be read");
	if (!ours)
		return fault_set(f, -EPERM, path,
				 "was not written by Garboard and is not "
				 "touched; remove it, or set k3s.manage to "
				 "false");
	r = make_dir(root, "/etc/systemd/system", 0755, f);
	return r < 0 ? r : replace(path, 0644, text, strlen(text), f);
}

/* ---- configuration ---- */

static bool is_yaml(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (strcasecmp(dot, ".yaml") == 0 ||
		       strcasecmp(dot, ".yml") == 0);
}

static int check_dropin(const char *root, const char *name, const char *config,
			struct fault *f)
{
	_cleanup_free_ char *text = NULL, *key = NULL;
	char path[K3S_PATH_MAX];
	struct fault why = FAULT_INIT;
	size_t size;
	int r;

	(void)snprintf(path, sizeof(path), "%s%s/%.200s", root, K3S_DROPIN_DIR,
		       name);
	r = file_read(path, SMALL_FILE_MAX, &text, &size, f);
	if (r < 0)
		return fault_errno(f, r, path, "cannot be read");
	r = k3s_config_conflict(config, text, size, &key, &why);
	if (r < 0)
		return fault_set(f, r, path, "%s", why.text);
	if (r > 0)
		return fault_set(f, -EPERM, path,
				 "sets %s, which replaces the value Garboard "
				 "writes to " K3S_CONFIG "; remove it there",
				 key);
	return 0;
}

/* A drop-in is read after us and wins: replaced lists lose SANs (1.1). */
static int check_dropins(const char *root, const char *config,
			 struct fault *f)
{
	char path[K3S_PATH_MAX];
	_cleanup_closedir_ DIR *dir =
		opendir(under(root, K3S_DROPIN_DIR, path));
	struct dirent *d;
	size_t n = 0;
	int r;

	if (!dir)
		return errno == ENOENT ?
			       0 :
			       fault_errno(f, -errno, path, "cannot be read");
	while ((d = readdir(dir))) {
		if (!is_yaml(d->d_name))
			continue;
		if (++n > DROPINS_MAX)
			return fault_set(f, -E2BIG, path, "too many files");
		r = check_dropin(root, d->d_name, config, f);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_ours(const char *path, struct fault *f)
{
	_cleanup_free_ char *have = NULL;
	size_t size;
	int r;

	r = file_read(path, K3S_CONFIG_MAX, &have, &size, f);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (strncmp(have, K3S_CONFIG_MARK, strlen(K3S_CONFIG_MARK)) == 0)
		return 0;
	return fault_set(f, -EPERM, path,
			 "was not written by Garboard and is not replaced; "
			 "move what is needed into the spec and remove it");
}

int k3s_files_write_config(const char *root,
			   const struct order_k3s_configure *c,
			   struct fault *f)
{
	_cleanup_free_ char *text = NULL;
	char path[K3S_PATH_MAX];
	int r;

	(void)under(root, K3S_CONFIG, path);
	r = check_ours(path, f);
	if (r < 0)
		return r;
	r = k3s_config_render(c, &text, f);
	if (r < 0)
		return r;
	r = check_dropins(root, text, f);
	if (r == 0)
		r = make_dir(root, K3S_CONFIG_DIR, 0755, f);
	return r < 0 ? r : replace(path, 0600, text, strlen(text), f);
}

bool k3s_files_config_says(const char *root, const char *text)
{
	_cleanup_free_ char *have = NULL;
	char path[K3S_PATH_MAX];
	const char *line;
	size_t size;

	if (file_read(under(root, K3S_CONFIG, path), K3S_CONFIG_MAX, &have,
		      &size, NULL) < 0)
		return false;
	for (line = have; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, text, strlen(text)) == 0)
			return true;
		if (!*line)
			break;
	}
	return false;
}

int k3s_files_write_token(const char *root, const char *token,
			  struct fault *f)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789._~+/=:-";
	char path[K3S_PATH_MAX];
	int r;

	(void)under(root, K3S_TOKEN_FILE, path);
	if (!*token || strspn(token, allowed) != strlen(token))
		return fault_set(f, -EINVAL, path,
				 "the token has characters no token has; "
				 "nothing was changed");
	r = make_dir(root, K3S_CONFIG_DIR, 0755, f);
	return r < 0 ? r : replace(path, 0600, token, strlen(token), f);
}

/* ---- manifests ---- */

int k3s_files_write_manifest(const char *root, enum manifest_slot slot,
			     const void *content, size_t size,
			     struct fault *f)
{
	/* The Addon's name is the part before the dot (5.1). */
	static const char *const names[] = {
		[SLOT_KUBE_VIP] = "garboard-kube-vip.yaml",
		[SLOT_CILIUM] = "garboard-cilium.yaml",
		[SLOT_CRDS] = "garboard-crds.yaml",
		[SLOT_EGRESS] = "garboard-egress.yaml",
	};
	_Static_assert(sizeof(names) / sizeof(names[0]) == SLOT_MAX,
		       "every slot has a file");
	char path[K3S_PATH_MAX];
	int r;

	if (slot <= 0 || slot >= SLOT_MAX)
		return fault_set(f, -EINVAL, "manifest", "unknown slot");
	(void)snprintf(path, sizeof(path), "%s%s/%s", root, K3S_MANIFESTS,
		       names[slot]);
	r = make_dir(root, K3S_MANIFESTS, 0700, f);
	return r < 0 ? r : replace(path, 0600, content, size, f);
}

/* ---- what k3s has ---- */

bool k3s_files_has_data(const char *root)
{
	char path[K3S_PATH_MAX];

	return access(under(root, K3S_WAL, path), F_OK) == 0;
}

static void file_digest(const char *root, const char *path, char ret_hex[65])
{
	_cleanup_free_ char *data = NULL;
	char full[K3S_PATH_MAX];
	uint8_t digest[32];
	size_t size;

	ret_hex[0] = '\0';
	if (file_read(under(root, path, full), SMALL_FILE_MAX, &data, &size,
		      NULL) == 0 &&
	    key_sha256(data, size, digest) == 0)
		format_hex(digest, sizeof(digest), ret_hex);
}

void k3s_files_status(const char *root, struct k3s_status *s)
{
	bool ours = true;

	s->has_data = k3s_files_has_data(root);
	file_digest(root, K3S_CONFIG, s->config_sha256);
	file_digest(root, K3S_TLS "/server-ca.crt", s->ca_sha256);
	s->unit_foreign = k3s_files_unit_is_ours(root, &ours) == 0 && !ours;
}

/* PEM has no character that JSON would escape but the line end. */
static int put_pem(char *out, size_t room, const char *key, const char *pem)
{
	size_t n = (size_t)snprintf(out, room, "\"%s\":\"", key);

	for (; *pem && n + 4 < room; pem++) {
		if (*pem == '\n') {
			out[n++] = '\\';
			out[n++] = 'n';
		} else if ((unsigned char)*pem < 0x20 || *pem == '"' ||
			   *pem == '\\' || (unsigned char)*pem > 0x7e) {
			return -EBADMSG;
		} else {
			out[n++] = *pem;
		}
	}
	if (*pem)
		return -E2BIG;
	out[n++] = '"';
	out[n] = '\0';
	return (int)n;
}

static int admin_json(const char *root, char *out, size_t room,
		      struct fault *f)
{
	static const struct {
		const char *key, *path;
	} parts[] = {
		{ "ca", K3S_TLS "/server-ca.crt" },
		{ "cert", K3S_TLS "/client-admin.crt" },
		{ "key", K3S_TLS "/client-admin.key" },
	};
	size_t i, n = 0;
	int r = 0;

	for (i = 0; r >= 0 && i < 3; i++) {
		char path[K3S_PATH_MAX], *pem = NULL;
		size_t size = 0;

		r = file_read(under(root, parts[i].path, path), SMALL_FILE_MAX,
			      &pem, &size, f);
		if (r == -ENOENT)
			return fault_set(f, r, path, "is not there (yet)");
		if (r < 0)
			return r;
		out[n++] = i ? ',' : '{';
		r = put_pem(out + n, room - n - 2, parts[i].key, pem);
		if (r >= 0)
			n += r;
		else
			(void)fault_errno(f, r, path, "is not PEM text");
		explicit_bzero(pem, size);
		free(pem);
	}
	if (r < 0)
		return r;
	out[n++] = '}';
	out[n] = '\0';
	return (int)n;
}

int k3s_files_credential(const char *root, enum credential_kind kind,
			 char **ret_text, size_t *ret_size, struct fault *f)
{
	char path[K3S_PATH_MAX];
	char *text;
	int r;

	if (kind == CREDENTIAL_TOKEN) {
		r = file_read(under(root, K3S_SERVER_TOKEN, path),
			      SMALL_FILE_MAX, ret_text, ret_size, f);
		return r == -ENOENT ?
			       fault_set(f, r, path, "is not there (yet)") :
			       r;
	}
	text = malloc(SEAL_PLAIN_MAX);
	if (!text)
		return fault_errno(f, -ENOMEM, "credential", "not read");
	r = admin_json(root, text, SEAL_PLAIN_MAX, f);
	if (r < 0) {
		explicit_bzero(text, SEAL_PLAIN_MAX);
		free(text);
		return r;
	}
	*ret_text = text;
	*ret_size = r;
	return 0;
}
