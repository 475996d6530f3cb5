/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libburrow: sandboxes of a burrow server, from C. What the command line of burrow is built on.
 *
 *     struct burrow_error err;
 *     struct burrow_client *client = NULL;
 *     struct burrow_result result;
 *     const char *const command[] = {"uname", "-a", NULL};
 *     const struct burrow_command what = {.argv = command};
 *
 *     if (burrow_open(NULL, &client, &err) < 0 ||
 *         burrow_run(client, &what, on_output, NULL, &result, &err) < 0)
 *         fprintf(stderr, "%s\n", err.text);
 *     burrow_close(client);
 *
 * It speaks HTTP/1.1 and WebSocket by itself, over a Unix socket or TCP, and needs no other library. For https:// it starts the program
 * burrow-tls, which comes with it.
 *
 * Failures: a call that can fail returns 0 or -1 and takes `struct burrow_error *err` last, which must not be NULL and is filled in on -1.
 * What a call gives back (`out`) is left alone then. Nothing is printed, no signal handler is set, no thread is made, SIGPIPE never comes.
 * Members of structs that a call is given and that mean nothing to the caller are 0, as `= {0}` makes them.
 *
 * Waiting: sockets never block. A call waits at most as long as burrow_options says for the next byte to move, and ends with
 * BURROW_TIMEOUT where nothing did. Who must stay responsive gives a descriptor in `cancel_fd`: when it becomes readable, the call ends
 * with BURROW_CANCELLED. Streams can be polled: burrow_stream_fd, burrow_socket_fd.
 *
 * Texts that are returned belong to the object they are asked of. Texts that come from a sandbox (names of files, output) may hold
 * anything, terminal escapes too: do not print them as they are.
 *
 * Threads: one thread per client and what was made with it; different clients are independent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BURROW_API __attribute__((visibility("default")))
#else
#define BURROW_API
#endif

/* The interface is the same as long as the first number is; what is added raises the second. */
#define BURROW_API_MAJOR 1
#define BURROW_API_MINOR 3

/* The version of the library, such as "0.1.0". */
BURROW_API const char *burrow_version(void);

/* ---- failures ---- */

enum burrow_failure {
    BURROW_OK = 0,
    BURROW_INVALID,     /* what was asked for cannot be */
    BURROW_NOT_FOUND,   /* there is no such thing */
    BURROW_DENIED,      /* no key, a wrong one, or one that may not do this */
    BURROW_CONFLICT,    /* not in this state */
    BURROW_LIMIT,       /* more than there is room for, or than the key may have */
    BURROW_TIMEOUT,     /* nothing moved for as long as was given */
    BURROW_GONE,        /* it was there and has ended */
    BURROW_SERVER,      /* the server failed */
    BURROW_UNREACHABLE, /* nobody answers at the address */
    BURROW_BROKEN,      /* the connection ended in the middle */
    BURROW_PROTOCOL,    /* what answered is no burrow server, or not a working one */
    BURROW_LOCAL,       /* this machine: a file, memory, a descriptor */
    BURROW_CANCELLED,   /* cancel_fd became readable, or a callback said so */
};

struct burrow_error {
    enum burrow_failure kind;
    int status;       /* of HTTP, where the server answered; else 0 */
    int sys;          /* errno, where the machine said no; else 0 */
    char code[64];    /* the server's word for programs: "not_found"; or "" */
    char text[768];   /* a sentence for people: lower case, no full stop, no control characters */
    char remedy[256]; /* what to do about it, where the server knows; or "" */
    char request_id[64]; /* by which the server's log knows the request; or "" */
};

/* ---- the client ---- */

struct burrow_client;

struct burrow_options {
    /*
     * "http://host:port", "https://host", or "unix:/path/to/burrow.sock". NULL: $BURROW_URL, else the socket of the local server
     * ($BURROW_DATA/burrow.sock, else /var/lib/burrow/burrow.sock).
     */
    const char *url;
    const char *
        api_key; /* NULL: $BURROW_API_KEY, else none, which the local socket's owner does not need */
    int connect_timeout_ms;  /* 0: 10000 */
    int timeout_ms;          /* longest time without a byte; 0: 120000; negative: any */
    int cancel_fd;           /* see above; 0 or negative: none */
    const char *tls_program; /* NULL: burrow-tls, beside the program, then where it was installed */
    const char *ca_file;     /* for https; NULL: $BURROW_CA_FILE, else the machine's */
    const char *user_agent;  /* NULL: "libburrow/VERSION" */
};

/* Connects to nobody yet. `options` may be NULL; texts in it are copied. */
BURROW_API int burrow_open(const struct burrow_options *options, struct burrow_client **out,
                           struct burrow_error *err);
/* Connects now, for the next request: BURROW_UNREACHABLE where nobody listens. */
BURROW_API int burrow_connect(struct burrow_client *client, struct burrow_error *err);
/* NULL is fine. Streams and sockets of the client must be closed before. */
BURROW_API void burrow_close(struct burrow_client *client);
/* The address in use, as a URL. */
BURROW_API const char *burrow_url(const struct burrow_client *client);
/* Another patience from now on; see burrow_options. */
BURROW_API void burrow_set_timeout(struct burrow_client *client, int timeout_ms);
/*
 * Another descriptor that cancels from now on; 0 or negative: none. A cancelled call has only stopped waiting: what it asked for may have been done, and
 * what it began goes on. Without a descriptor, or with one that is not readable, requests work again, to end that.
 */
BURROW_API void burrow_set_cancel_fd(struct burrow_client *client, int cancel_fd);

/* ---- what the server answers ---- */

struct burrow_answer; /* an answer; owns all values in it */
struct burrow_value;  /* a value of JSON in it; NULL stands for one that is not there */

enum burrow_kind {
    BURROW_NULL,
    BURROW_BOOL,
    BURROW_NUMBER,
    BURROW_TEXT,
    BURROW_LIST,
    BURROW_MAP,
};

/* The whole of it; NULL where the answer has no body. */
BURROW_API const struct burrow_value *burrow_answer_value(const struct burrow_answer *answer);
/* The same as it was sent; "" for none. */
BURROW_API const char *burrow_answer_text(const struct burrow_answer *answer);
BURROW_API void burrow_answer_free(struct burrow_answer *answer);

/* All of these take NULL. Names of members can be joined by dots: "limits.memoryBytes". */
BURROW_API enum burrow_kind burrow_value_kind(const struct burrow_value *value);
BURROW_API const struct burrow_value *burrow_get(const struct burrow_value *map, const char *path);
/* A text or a number as text; NULL where it is neither. */
BURROW_API const char *burrow_text(const struct burrow_value *value);
BURROW_API size_t burrow_text_length(const struct burrow_value *value);
/* The number, or `otherwise`. */
BURROW_API int64_t burrow_integer(const struct burrow_value *value, int64_t otherwise);
BURROW_API bool burrow_truth(const struct burrow_value *value);
/* How many children; for (v = burrow_first(list); v; v = burrow_next(v)). */
BURROW_API size_t burrow_count(const struct burrow_value *value);
BURROW_API const struct burrow_value *burrow_first(const struct burrow_value *value);
BURROW_API const struct burrow_value *burrow_next(const struct burrow_value *value);
/* Its name in the map it is in; NULL in a list. */
BURROW_API const char *burrow_key(const struct burrow_value *value);

/* ---- any request ---- */

/* Bytes to send. One of: data, fd (and length, or BURROW_UNTIL_END), read. None: no body. */
#define BURROW_UNTIL_END UINT64_MAX
struct burrow_body {
    const char *type; /* NULL: "application/json" for data, else "application/octet-stream" */
    const void *data;
    int fd; /* used where has_fd is true; read from where it is */
    bool has_fd;
    uint64_t length; /* of data, or of what fd gives */
    /* Gives the next bytes, as many as were put into `to`; 0 at the end; -1 to give up (errno says why). */
    ssize_t (*read)(void *context, void *to, size_t size);
    /* After bytes were sent; may be NULL. */
    void (*on_progress)(void *context, uint64_t sent);
    void *context;
};

/*
 * "/sandboxes" is below the server's /api/v1. `json` may be NULL: no body; `out` may be NULL: nobody wants the answer, else it is freed by
 * burrow_answer_free. Answers up to 64 MiB. Fails where the status is 400 or more.
 */
BURROW_API int burrow_ask(struct burrow_client *client, const char *method, const char *path,
                          const char *json, struct burrow_answer **out, struct burrow_error *err);
BURROW_API int burrow_send(struct burrow_client *client, const char *method, const char *path,
                           const struct burrow_body *body, struct burrow_answer **out,
                           struct burrow_error *err);

/*
 * Percent-encodes a text for a path or a query; the caller frees it with free().
 * burrow_path("/sandboxes/%s/files?path=%s", id, path, NULL) encodes each text and puts it in place of a %s. Behind "path=" what is not UTF-8 goes as the
 * server takes it, by "pathBase64=".
 */
BURROW_API char *burrow_path(const char *format, ...) __attribute__((sentinel));

/* ---- bytes and records as they come ---- */

struct burrow_stream;

/*
 * burrow_send in two halves, for whoever has something to do while the server works: all of the request is sent, and burrow_finish waits
 * for the answer, which goes with the stream. Only burrow_finish and burrow_stream_close take a stream of burrow_send_ahead.
 */
BURROW_API int burrow_send_ahead(struct burrow_client *client, const char *method, const char *path,
                                 const struct burrow_body *body, struct burrow_stream **out,
                                 struct burrow_error *err);
BURROW_API int burrow_finish(struct burrow_stream *stream, struct burrow_answer **out,
                             struct burrow_error *err);

/* `accept`: NULL for bytes, "application/x-ndjson" for records. The stream has a connection of its own. */
BURROW_API int burrow_stream_open(struct burrow_client *client, const char *method,
                                  const char *path, const char *accept,
                                  const struct burrow_body *body, struct burrow_stream **out,
                                  struct burrow_error *err);
/* At most `size` bytes: how many, 0 at the end, -1. */
BURROW_API ssize_t burrow_stream_read(struct burrow_stream *stream, void *to, size_t size,
                                      struct burrow_error *err);
/* The next record, whose values live until the next call: 1, 0 at the end, -1. */
BURROW_API int burrow_stream_next(struct burrow_stream *stream, const struct burrow_value **out,
                                  struct burrow_error *err);
/* The same without waiting: 2 where no record is whole yet. Ask burrow_stream_is_ready before you poll. */
BURROW_API int burrow_stream_next_now(struct burrow_stream *stream, const struct burrow_value **out,
                                      struct burrow_error *err);
/* For poll; and whether something is there without waiting. */
BURROW_API int burrow_stream_fd(const struct burrow_stream *stream);
BURROW_API bool burrow_stream_is_ready(struct burrow_stream *stream);
/* How many bytes come in all, where the server says; -1 else. */
BURROW_API int64_t burrow_stream_length(const struct burrow_stream *stream);
/* A header of the answer, whatever the case of its name, until the next call; NULL: there is none. */
BURROW_API const char *burrow_stream_header(const struct burrow_stream *stream, const char *name);
/* At its end or in the middle of it. NULL is fine. */
BURROW_API void burrow_stream_close(struct burrow_stream *stream);

/* A request whose body is sent piece by piece, beside others: the input of a command. */
struct burrow_upload;
BURROW_API int burrow_upload_open(struct burrow_client *client, const char *method,
                                  const char *path, struct burrow_upload **out,
                                  struct burrow_error *err);
/* How much was taken, perhaps 0 (poll burrow_upload_fd for writing); -1. */
BURROW_API ssize_t burrow_upload_send(struct burrow_upload *upload, const void *data, size_t size,
                                      struct burrow_error *err);
/* Nothing more comes: 1 when all is sent, 0: again after POLLOUT. */
BURROW_API int burrow_upload_finish(struct burrow_upload *upload, struct burrow_error *err);
BURROW_API int burrow_upload_fd(const struct burrow_upload *upload);
/* Whether there are bytes of ours that wait to be sent. */
BURROW_API bool burrow_upload_is_full(const struct burrow_upload *upload);
BURROW_API void burrow_upload_close(struct burrow_upload *upload);

/* ---- sandboxes ---- */

/* Wherever a sandbox is named, its id or its name will do. Sizes and times: 0 is what the server has by default. */
struct burrow_sandbox_options {
    const char *name, *description, *runtime, *snapshot;
    const char *const *env; /* "KEY=VALUE", NULL at the end */
    int64_t memory_bytes, cpu_millicores, disk_bytes;
    int64_t idle_timeout_ms;
    bool never_idle; /* idle_timeout_ms is taken as 0: for ever */
};
#define BURROW_ID 64
BURROW_API int burrow_sandbox_create(struct burrow_client *client,
                                     const struct burrow_sandbox_options *options,
                                     char out_id[BURROW_ID], struct burrow_error *err);
BURROW_API int burrow_sandbox_get(struct burrow_client *client, const char *sandbox,
                                  struct burrow_answer **out, struct burrow_error *err);
BURROW_API int burrow_sandbox_delete(struct burrow_client *client, const char *sandbox,
                                     struct burrow_error *err);
BURROW_API int burrow_sandbox_pause(struct burrow_client *client, const char *sandbox,
                                    struct burrow_error *err);
BURROW_API int burrow_sandbox_resume(struct burrow_client *client, const char *sandbox,
                                     struct burrow_error *err);

/*
 * Walks through a list page by page: "/sandboxes", "/snapshots?sandboxId=…", "/executions". on_item returns 0 to go on, 1 to stop,
 * -1 to fail (it fills in err). `most` items, 0: all. Items live until on_item returns.
 */
BURROW_API int burrow_list(struct burrow_client *client, const char *path, uint64_t most,
                           int (*on_item)(void *context, const struct burrow_value *item,
                                          struct burrow_error *err),
                           void *context, struct burrow_error *err);

/* ---- commands ---- */

struct burrow_command {
    const char *sandbox;     /* where; NULL: in one of its own, which ends with it */
    const char *const *argv; /* program and arguments, NULL at the end; no shell */
    const char *const *env;  /* "KEY=VALUE", NULL at the end */
    const char *directory, *user;
    const char *runtime, *snapshot; /* of its own sandbox */
    int64_t timeout_ms;             /* 0: as the server has it */
    const void *input;              /* for its standard input */
    size_t input_length;
};

struct burrow_result {
    char id[BURROW_ID], sandbox_id[BURROW_ID];
    int exit_code;
    char cause[32];  /* "exited", "timeout", "memory", … */
    char error[512]; /* why it could not run, or "" */
    int64_t duration_ms;
    bool output_lost; /* it wrote more than the server keeps */
};

/* `stream` is 1 or 2. 0, or -1 to stop: the call then ends with BURROW_CANCELLED. */
typedef int burrow_on_output(void *context, int stream, const void *data, size_t length);

/*
 * Runs it and returns when it has ended, however long it is quiet. A command that fails is no failure of the call. on_output may be NULL. out->id and
 * out->sandbox_id are there from the command's start on, where the call fails later too: a command in a sandbox that stays goes on after a cancel
 * or a broken connection, and burrow_signal ends it.
 */
BURROW_API int burrow_run(struct burrow_client *client, const struct burrow_command *command,
                          burrow_on_output *on_output, void *context, struct burrow_result *out,
                          struct burrow_error *err);
/*
 * Starts it in a sandbox that stays and returns the id of the execution. With is_background it is a job: it runs beside others. Its output comes by
 * burrow_stream_open of "/executions/ID/output?stream=stdout&follow=true".
 */
BURROW_API int burrow_start(struct burrow_client *client, const struct burrow_command *command,
                            bool is_background, char out_id[BURROW_ID], struct burrow_error *err);
/* Until it has ended, or for wait_ms (0 or negative: only looks): 1 when it has, 0. */
BURROW_API int burrow_wait(struct burrow_client *client, const char *execution, int64_t wait_ms,
                           struct burrow_result *out, struct burrow_error *err);
/* "INT", "TERM", "KILL". */
BURROW_API int burrow_signal(struct burrow_client *client, const char *execution,
                             const char *signal, struct burrow_error *err);

/* ---- a terminal, or any command, both ways: a WebSocket ---- */

struct burrow_socket;

enum burrow_message {
    BURROW_MESSAGE_STARTED, /* first: value is the execution */
    BURROW_MESSAGE_OUTPUT,  /* data and length; stream is 1 or 2 */
    BURROW_MESSAGE_ERROR,   /* what was sent could not be taken: value.detail says why */
    BURROW_MESSAGE_EXIT,    /* last: value.exitCode */
    BURROW_MESSAGE_CLOSED,  /* the server went away */
};
struct burrow_event {
    enum burrow_message kind;
    int stream;
    const void *data;
    size_t length;
    const struct burrow_value *value; /* these live until the next call */
};

/* `from`: NULL all that was shown, "now", or an offset. */
BURROW_API int burrow_attach(struct burrow_client *client, const char *execution, const char *from,
                             struct burrow_socket **out, struct burrow_error *err);
/* Waits up to wait_ms (negative: for ever) for the next: 1, 0 when there was none, -1. */
BURROW_API int burrow_socket_next(struct burrow_socket *socket, int wait_ms,
                                  struct burrow_event *out, struct burrow_error *err);
BURROW_API int burrow_socket_input(struct burrow_socket *socket, const void *data, size_t length,
                                   struct burrow_error *err);
BURROW_API int burrow_socket_resize(struct burrow_socket *socket, int rows, int cols,
                                    struct burrow_error *err);
BURROW_API int burrow_socket_signal(struct burrow_socket *socket, const char *signal,
                                    struct burrow_error *err);
BURROW_API int burrow_socket_close_input(struct burrow_socket *socket, struct burrow_error *err);
BURROW_API int burrow_socket_fd(const struct burrow_socket *socket);
/* Leaves; the command goes on. NULL is fine. */
BURROW_API void burrow_socket_close(struct burrow_socket *socket);

/*
 * A connection to the sandbox's SSH through the server's own API: what comes on in_fd is sent, what the server sends goes to out_fd, until one of them
 * ends. For ssh's ProxyCommand; the client's key is who logs in. Both are made non-blocking meanwhile.
 */
BURROW_API int burrow_ssh_relay(struct burrow_client *client, const char *sandbox, int in_fd,
                                int out_fd, struct burrow_error *err);

/* ---- files ---- */

/*
 * To and from a descriptor of the caller's, from where it stands. Paths are absolute. `mode` 0: as the server has it. Where reading fails in the middle,
 * the descriptor has got a part; where writing does, the sandbox has what it had.
 */
BURROW_API int burrow_file_write(struct burrow_client *client, const char *sandbox,
                                 const char *path, int fd, unsigned mode, bool makes_parents,
                                 struct burrow_error *err);
BURROW_API int burrow_file_read(struct burrow_client *client, const char *sandbox, const char *path,
                                int fd, struct burrow_error *err);

/*
 * The same with more to say. Files may have any size: what is larger than the server takes or gives at once goes in parts, those to the sandbox into a
 * file ".burrow-…" beside the one it becomes at the end (through a link: in place). A file that changes while it comes in parts is BURROW_CONFLICT.
 * What is no regular file here, as a pipe, is read to its end.
 */
struct burrow_transfer {
    const char *sandbox, *path;
    int fd;
    unsigned mode;       /* to the sandbox */
    bool makes_parents;  /* to the sandbox */
    uint64_t most_bytes; /* from the sandbox: more is BURROW_LIMIT, with a status of 0; 0: any */
    /* After some have moved; total is 0 where it is not known. May be NULL. */
    void (*on_progress)(void *context, uint64_t done, uint64_t total);
    void *context;
};
/* `bytes`: how many it were; may be NULL. */
BURROW_API int burrow_file_send(struct burrow_client *client, const struct burrow_transfer *what,
                                uint64_t *bytes, struct burrow_error *err);
BURROW_API int burrow_file_fetch(struct burrow_client *client, const struct burrow_transfer *what,
                                 uint64_t *bytes, struct burrow_error *err);
/* How much of a file or an archive the server takes or gives at once; asked for once. */
BURROW_API int burrow_file_limit(struct burrow_client *client, uint64_t *out,
                                 struct burrow_error *err);
BURROW_API int burrow_file_stat(struct burrow_client *client, const char *sandbox, const char *path,
                                struct burrow_answer **out, struct burrow_error *err);
BURROW_API int burrow_file_remove(struct burrow_client *client, const char *sandbox,
                                  const char *path, bool is_recursive, struct burrow_error *err);
BURROW_API int burrow_directory_make(struct burrow_client *client, const char *sandbox,
                                     const char *path, bool makes_parents,
                                     struct burrow_error *err);

/* ---- snapshots ---- */

BURROW_API int burrow_snapshot_create(struct burrow_client *client, const char *sandbox,
                                      const char *name, const char *tag, char out_id[BURROW_ID],
                                      struct burrow_error *err);
BURROW_API int burrow_snapshot_get(struct burrow_client *client, const char *snapshot,
                                   struct burrow_answer **out, struct burrow_error *err);
BURROW_API int burrow_snapshot_delete(struct burrow_client *client, const char *snapshot,
                                      struct burrow_error *err);

#ifdef __cplusplus
}
#endif
