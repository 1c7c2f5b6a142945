/* Macros of libraries that cppcheck would have to see headers for. */
#define take_ptr(p) (p)
#define json_array_foreach(a, i, v) for ((i) = 0; (i) < 1; (i)++)
#define json_object_foreach(o, k, v) for ((k) = 0; (k); (k) = 0)
#define TAILQ_HEAD(n, t) struct
#define LIST_HEAD(n, t) struct
#define TAILQ_ENTRY(t) struct
#define LIST_ENTRY(t) struct
#define LIST_FOREACH(v, h, f) for ((v) = 0; (v); (v) = 0)
#define TAILQ_FOREACH(v, h, f) for ((v) = 0; (v); (v) = 0)
