#include "coordinator/kube.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KUBE_PATH_MAX 1024

struct kube {
	CURL *curl;
	struct curl_slist *headers;
	char base[IP_TEXT_MAX + 32];	/* "https://192.0.2.9:6443" */
	bool (*cancelled)(void *userdata);
	void *userdata;
	char error[CURL_ERROR_SIZE];
	char *body;			/* of the call in flight */
	size_t size;
};

static size_t on_body(char *data, size_t one, size_t size, void *userdata)
{
	struct kube *k = userdata;
	char *grown;

	(void)one;	/* always 1: CURLOPT_WRITEFUNCTION(3) */
	if (size > KUBE_BODY_MAX - k->size)
		return 0;
	grown = realloc(k->body, k->size + size + 1);
	if (!grown)
		return 0;
	k->body = grown;
	memcpy(k->body + k->size, data, size);
	k->size += size;
	k->body[k->size] = '\0';
	return size;
}

static int on_progress(void *userdata, curl_off_t dltotal, curl_off_t dlnow,
		       curl_off_t ultotal, curl_off_t ulnow)
{
	struct kube *k = userdata;

	(void)dltotal;
	(void)dlnow;
	(void)ultotal;
	(void)ulnow;
	return k->cancelled && k->cancelled(k->userdata);
}

/* curl keeps a copy (CURL_BLOB_COPY), so the caller's text may go. */
static CURLcode set_blob(CURL *curl, CURLoption option, const char *pem)
{
	struct curl_blob blob = {
		.data = (void *)(uintptr_t)pem,
		.len = strlen(pem),
		.flags = CURL_BLOB_COPY,
	};

	return curl_easy_setopt(curl, option, &blob);
}

static CURLcode set_identity(CURL *c, const struct kube_target *t)
{
	CURLcode r = set_blob(c, CURLOPT_CAINFO_BLOB, t->ca_pem);

	/* The blob replaces a file only: a built-in directory would still
	 * let every public authority speak for the cluster. */
	if (!r)
		r = curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
	if (r || !t->cert_pem || !t->key_pem)
		return r;
	r = curl_easy_setopt(c, CURLOPT_SSLCERTTYPE, "PEM");
	if (!r)
		r = curl_easy_setopt(c, CURLOPT_SSLKEYTYPE, "PEM");
	if (!r)
		r = set_blob(c, CURLOPT_SSLCERT_BLOB, t->cert_pem);
	if (!r)
		r = set_blob(c, CURLOPT_SSLKEY_BLOB, t->key_pem);
	return r;
}

static CURLcode set_options(struct kube *k, const struct kube_target *t)
{
	usec timeout = t->timeout ? t->timeout : KUBE_TIMEOUT;
	CURL *c = k->curl;
	CURLcode r = set_identity(c, t);

#define SET(option, value)                                                    \
	if (!r)                                                               \
	r = curl_easy_setopt(c, option, value)
	SET(CURLOPT_UNIX_SOCKET_PATH, t->socket_path);
	SET(CURLOPT_PROTOCOLS_STR, "https");
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_TIMEOUT_MS, (long)(timeout / USEC_PER_MSEC));
	SET(CURLOPT_HTTPHEADER, k->headers);
	SET(CURLOPT_USERAGENT, "garboard/" GARBOARD_VERSION);
	SET(CURLOPT_ERRORBUFFER, k->error);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, k);
	SET(CURLOPT_NOPROGRESS, 0L);
	SET(CURLOPT_XFERINFOFUNCTION, on_progress);
	SET(CURLOPT_XFERINFODATA, k);
#undef SET
	return r;
}

static int add_header(struct kube *k, const char *line)
{
	struct curl_slist *list = curl_slist_append(k->headers, line);

	if (!list)
		return -ENOMEM;
	k->headers = list;
	return 0;
}

int kube_open(const struct kube_target *target, struct kube **ret_kube,
	      struct fault *f)
{
	CLEANUP(cleanup_kube) struct kube *k = calloc(1, sizeof(*k));
	char addr[IP_TEXT_MAX];

	if (!k)
		return -ENOMEM;
	(void)ip_addr_format(&target->address, addr);
	(void)snprintf(k->base, sizeof(k->base),
		       strchr(addr, ':') ? "https://[%s]:%u" :
					   "https://%s:%u",
		       addr, target->port);
	k->cancelled = target->cancelled;
	k->userdata = target->userdata;
	k->curl = curl_easy_init();
	if (!k->curl || add_header(k, "Accept: application/json") < 0 ||
	    add_header(k, "Content-Type: application/json") < 0 ||
	    add_header(k, "Expect:") < 0)
		return -ENOMEM;
	if (set_options(k, target) != CURLE_OK)
		return fault_set(f, -EINVAL, k->base,
				 "the client cannot be set up: %s", k->error);
	*ret_kube = take_ptr(k);
	return 0;
}

struct kube *kube_free(struct kube *k)
{
	if (!k)
		return NULL;
	curl_easy_cleanup(k->curl);
	curl_slist_free_all(k->headers);
	free(k->body);
	free(k);
	return NULL;
}

static int transport_fault(struct kube *k, CURLcode code, const char *path,
			   struct fault *f)
{
	const char *why = k->error[0] ? k->error : curl_easy_strerror(code);

	switch (code) {
	case CURLE_ABORTED_BY_CALLBACK:
		return fault_set(f, -EINTR, k->base, "interrupted at %s", path);
	case CURLE_WRITE_ERROR:
		return fault_set(f, -E2BIG, k->base,
				 "the answer to %s is larger than %u bytes",
				 path, KUBE_BODY_MAX);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_ISSUER_ERROR:
		return fault_set(f, -EKEYREJECTED, k->base,
				 "the certificate does not verify: %s", why);
	case CURLE_COULDNT_CONNECT:
		return fault_set(f, -ECONNREFUSED, k->base,
				 "nothing answers: %s", why);
	default:
		return fault_set(f, -EAGAIN, k->base, "no answer to %s: %s",
				 path, why);
	}
}

/* metav1.Status carries the reason; anything else is quoted, bounded. */
static int status_fault(struct kube *k, long status, const char *path,
			struct fault *f)
{
	json_t *body = k->body ? json_loads(k->body, 0, NULL) : NULL;
	const char *reason = json_string_value(json_object_get(body, "reason"));
	const char *text = json_string_value(json_object_get(body, "message"));
	int err = -EPROTO;

	if (status == 404)
		err = -ENOENT;
	else if (status == 409)
		err = reason && strcmp(reason, "AlreadyExists") == 0 ? -EEXIST :
								       -ESTALE;
	else if (status == 401 || status == 403)
		err = -EACCES;
	else if (status == 429 || (status >= 500 && status <= 504))
		err = -EAGAIN;
	(void)fault_set(f, err, k->base, "%s answered %ld: %.200s", path,
			status, text ? text : k->body ? k->body : "(empty)");
	json_decref(body);
	return err;
}

static int perform(struct kube *k, const char *path, struct fault *f)
{
	char url[sizeof(k->base) + KUBE_PATH_MAX];
	long status = 0;
	CURLcode code;

	if (snprintf(url, sizeof(url), "%s%s", k->base, path) >=
	    (int)sizeof(url))
		return fault_set(f, -E2BIG, k->base, "path is too long");
	free(k->body);
	k->body = NULL;
	k->size = 0;
	k->error[0] = '\0';
	code = curl_easy_setopt(k->curl, CURLOPT_URL, url);
	if (code == CURLE_OK)
		code = curl_easy_perform(k->curl);
	if (code != CURLE_OK)
		return transport_fault(k, code, path, f);
	(void)curl_easy_getinfo(k->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200 || status > 299)
		return status_fault(k, status, path, f);
	return 0;
}

static int parse_body(struct kube *k, const char *path, json_t **ret_object,
		      struct fault *f)
{
	json_error_t error;
	json_t *object;

	object = json_loads(k->body ? k->body : "", JSON_REJECT_DUPLICATES,
			    &error);
	if (!json_is_object(object)) {
		json_decref(object);
		return fault_set(f, -EPROTO, k->base,
				 "%s answered no JSON object: %s", path,
				 error.text);
	}
	*ret_object = object;
	return 0;
}

int kube_get(struct kube *k, const char *path, json_t **ret_object,
	     struct fault *f)
{
	int r;

	(void)curl_easy_setopt(k->curl, CURLOPT_CUSTOMREQUEST, NULL);
	(void)curl_easy_setopt(k->curl, CURLOPT_HTTPGET, 1L);
	r = perform(k, path, f);
	return r < 0 ? r : parse_body(k, path, ret_object, f);
}

int kube_get_text(struct kube *k, const char *path, char **ret_text,
		  struct fault *f)
{
	int r;

	(void)curl_easy_setopt(k->curl, CURLOPT_CUSTOMREQUEST, NULL);
	(void)curl_easy_setopt(k->curl, CURLOPT_HTTPGET, 1L);
	r = perform(k, path, f);
	if (r < 0)
		return r;
	*ret_text = k->body ? take_ptr(k->body) : strdup("");
	return *ret_text ? 0 : -ENOMEM;
}

static int send_object(struct kube *k, const char *method, const char *path,
		       json_t *object, json_t **ret_object, struct fault *f)
{
	char *text = json_dumps(object, JSON_COMPACT);
	int r;

	if (!text)
		return -ENOMEM;
	(void)curl_easy_setopt(k->curl, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(k->curl, CURLOPT_CUSTOMREQUEST, method);
	(void)curl_easy_setopt(k->curl, CURLOPT_POSTFIELDSIZE,
			       (long)strlen(text));
	(void)curl_easy_setopt(k->curl, CURLOPT_POSTFIELDS, text);
	r = perform(k, path, f);
	(void)curl_easy_setopt(k->curl, CURLOPT_POSTFIELDS, NULL);
	free(text);
	if (r < 0 || !ret_object)
		return r;
	return parse_body(k, path, ret_object, f);
}

int kube_post(struct kube *k, const char *path, json_t *object,
	      json_t **ret_object, struct fault *f)
{
	return send_object(k, "POST", path, object, ret_object, f);
}

int kube_put(struct kube *k, const char *path, json_t *object,
	     json_t **ret_object, struct fault *f)
{
	return send_object(k, "PUT", path, object, ret_object, f);
}
