/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * internal.h - an NFSv3 server as upstream: what its files share.
 *
 * upstream.c  the ops table, choice of a connection, limits, root handle, figures
 * conn.c      one connection: queue, calls in flight, deadlines, completions
 * submit.c    the submitter's side: queue, send, drive or wait
 * silence.c   whether anybody is there
 * conn_loop.c its thread: locate, connect, probe, pump, tear down, back off
 * sock.c      sockets: source port, options, non-blocking connect
 * locate.c    name and port look-up on a thread of its own, since getaddrinfo blocks
 * oneshot.c   MOUNT and portmapper: a call on a short-lived connection
 * wire.c      records and RPC headers on a socket
 * calls.c     struct ssc_call -> arguments        replies.c  results -> struct ssc_call
 *
 * The pump. A wire has no locks, so conn.lock is held around every call to it. Reading replies
 * needs somebody to wait in poll(): the one who holds the *pump*. That is the loop thread while
 * calls are in flight, or a submitter that drives its own call (ssc_call.drive_ns): with one call
 * at a time no other thread need wake up at all. Sending is done by the submitter itself if the lock
 * is free, else by who holds it (submissions wait in a wait-free queue meanwhile).
 * Only the loop thread opens and tears down, and only while it holds the pump, so a driver never
 * polls a closed descriptor. A submitter that may wait and finds the pump taken sleeps until its own
 * call is complete, and then runs done itself: one change of thread, where a completion on another
 * thread makes the host queue the request anew. Only it times calls out and reports late outcomes, in this order.
 *
 * Lock order: conn.lock, then upstream.lock, then budget.
 */
#ifndef SSC_UPSTREAM_INTERNAL_H
#define SSC_UPSTREAM_INTERNAL_H

#include <netinet/in.h>
#include <pthread.h>
#include <urcu/list.h>
#include <urcu/wfcqueue.h>

#include "ssc/budget.h"
#include "ssc/tsan.h"
#include "ssc/upstream.h"

#include "wire.h"

#define SSC_CONNECTIONS_MAX 16

/* Addresses of one name that are tried, in the resolver's order. */
#define SSC_ADDRS_MAX 8

/* ---- sock.c ---- */

union ssc_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/** @brief "192.0.2.1:2049" or "[2001:db8::1]:2049" into @buf, which is returned. */
const char *ssc_sock_str(const union ssc_sockaddr *addr, char *buf, size_t size);

void ssc_sock_set_port(union ssc_sockaddr *addr, uint16_t port);

/**
 * @brief Start a TCP connection to @addr. Does not block.
 *
 * @param privileged  bind to a source port below 1024; without the right to, any port is used
 * @param port        in: the source port to try first, 0 = none; out: the one in use
 * @return the descriptor, or -errno
 */
int ssc_sock_connect(const union ssc_sockaddr *addr, bool privileged, uint16_t *port);

/** @brief Once connected: no delay, keepalive, give up on unacknowledged data after @dead_ns. */
void ssc_sock_tune(int fd, uint64_t dead_ns);

/** @brief Outcome of a connect that poll() called writable: 0 or an errno. */
int ssc_sock_error(int fd);

/* ---- locate.c ---- */

struct ssc_locate_result {
	bool ok;
	char why[96]; /* when not */
	int n_addrs;
	union ssc_sockaddr addrs[SSC_ADDRS_MAX]; /* with the port of NFS set */
};

struct ssc_locate;

/**
 * @brief Begin to look @server up, and its NFS port when @port is 0. @wake_fd (an eventfd that the
 *        job duplicates) is written when it is done. NULL when no thread can be had.
 */
struct ssc_locate *ssc_locate_start(const char *server, uint16_t port, bool privileged,
				    uint64_t timeout_ns, int wake_fd);

/** @brief True and *@result when it is done. */
bool ssc_locate_poll(struct ssc_locate *job, struct ssc_locate_result *result);

/** @brief Give it up or free it: a resolver that hangs ends in its own time. */
void ssc_locate_drop(struct ssc_locate *job);

/* ---- oneshot.c ---- */

/** @brief Stop a blocking query early when *stop becomes true (checked ten times a second). */
struct ssc_oneshot {
	bool privileged;
	uint64_t answer_by_ns;
	const atomic_bool *stop; /* may be NULL */
};

enum ssc_err ssc_oneshot_getport(const struct ssc_oneshot *o, const union ssc_sockaddr *server,
				 uint32_t program, uint32_t version, uint16_t *port);

enum ssc_err ssc_oneshot_mount(const struct ssc_oneshot *o, const union ssc_sockaddr *mountd,
			       const char *path, struct ssc_fh *fh);

/* ---- conn.c, submit.c, conn_loop.c ---- */

enum ssc_conn_state {
	SSC_CONN_IDLE,       /* no socket; next attempt not before retry_ns */
	SSC_CONN_LOCATING,   /* looking the name up */
	SSC_CONN_CONNECTING, /* TCP handshake */
	SSC_CONN_PROBING,    /* NULL call sent, to see that somebody answers */
	SSC_CONN_UP,
	SSC_CONN_STOPPED /* for good */
};

/* What the submitter inside submit does about its call's end. */
enum ssc_call_wait {
	SSC_WAIT_NOT,  /* nothing, or it drives: whoever completes the call sees to done */
	SSC_WAIT_HERE, /* sleeps, and will run done itself */
	SSC_WAIT_MINE, /* was woken: done is for it to run */
	SSC_WAIT_OVER  /* done was run, or is being run, elsewhere */
};

enum ssc_call_place { SSC_CALL_NEW, SSC_CALL_READY, SSC_CALL_FLIGHT, SSC_CALL_FINISHED };

/* Behind every struct ssc_call of ours. Guarded by conn.lock once queued. */
struct ssc_call_priv {
	struct cds_wfcq_node qnode; /* in conn.q */
	struct cds_list_head link;  /* in conn.ready or conn.flight */
	struct cds_list_head clink; /* in a list of completions to run */
	struct cds_list_head xlink; /* in conn.by_xid while in flight */
	struct cds_list_head wlink; /* in upstream.late_writes, guarded by upstream.lock */
	struct ssc_call *call;
	struct ssc_conn *conn;
	enum ssc_call_place place;
	uint32_t xid;
	uint32_t n_sent;
	uint64_t sent_ns;
	uint64_t load_bytes; /* counted in conn.load, and for data taken from the budget */
	bool has_budget;
	bool answered;           /* done has been told TIMEDOUT: what comes now is late */
	bool is_late_write;      /* in upstream.late_writes */
	struct ssc_call *shadow; /* the late result, until late is run */
	atomic_uint wait;        /* enum ssc_call_wait; a futex of the submitter */
};

/* Calls in flight are found by the low bits of their xid, which is a counter. */
#define SSC_XID_LISTS 64

struct ssc_conn {
	/* constant after start */
	struct ssc_upstream_nfs3 *up;
	unsigned int index;
	int evfd; /* wakes the loop thread */
	pthread_t thread;

	/* any thread */
	struct cds_wfcq_head q_head __attribute__((aligned(64)));
	struct cds_wfcq_tail q_tail;
	atomic_int pump;                    /* 1: somebody polls the socket */
	atomic_int n_flight;                /* calls in flight */
	atomic_ullong load;                 /* their bytes, for the choice of a connection */
	atomic_bool pump_wanted;            /* the loop thread asks a driver to let go */
	atomic_bool wanted;                 /* a further connection pays */
	atomic_bool broken;                 /* the loop thread shall tear down; set under lock */
	atomic_bool is_asking;              /* a NULL call asks whether anybody is there */
	atomic_bool kicked;                 /* evfd is written and not read yet */
	_Atomic(enum ssc_conn_state) state; /* changed by the loop thread under lock */

	/* guarded by lock */
	pthread_mutex_t lock __attribute__((aligned(64)));
	struct ssc_wire *wire; /* NULL before the handshake is done */
	int fd;
	char why[96];                  /* cause, for the log */
	struct cds_list_head ready;    /* to be issued, in order */
	struct cds_list_head flight;   /* issued, in order of issue */
	struct cds_list_head deferred; /* completions for the loop thread, by clink */
	struct cds_list_head late;     /* late outcomes, by link */
	struct cds_list_head by_xid[SSC_XID_LISTS];
	unsigned int n_long_reads;  /* in flight, with data worth placing */
	uint32_t null_xid;          /* of the NULL call under way */
	struct cds_list_head *comp; /* where a reply puts what is complete */
	unsigned int n_ready;
	bool in_budget_queue;
	union ssc_sockaddr peer; /* of the last connection that came up */
	uint64_t next_deadline_ns;
	uint64_t wake_by_ns;    /* when the loop thread looks again at the latest */
	uint64_t last_rx_ns;    /* a reply to a call */
	uint64_t last_heard_ns; /* or to a NULL call */
	uint64_t asked_ns;      /* when the NULL call of is_asking was sent */
	bool probe_done, probe_ok;
	bool bad_reply; /* one that could not be decoded */
	struct ssc_budget_waiter budget_waiter;

	/* loop thread only */
	struct ssc_locate *locate;
	struct ssc_locate_result where;
	int addr_at; /* which of where.addrs is tried */
	uint16_t local_port;
	uint64_t retry_ns;
	uint64_t backoff_ns;
	uint64_t step_by_ns; /* deadline of the present step */
	bool complained;     /* of the present absence */
};

struct ssc_upstream_nfs3 {
	struct ssc_upstream base;
	/* constant */
	struct ssc_upstream_config cfg; /* strings owned */
	struct ssc_conn conns[SSC_CONNECTIONS_MAX];
	/* atomic */
	atomic_uint n_conns; /* those started: grows while _new runs */
	atomic_bool stopping;
	atomic_bool silent; /* a call got no answer in time, and nothing came since */
	atomic_int users;   /* threads inside submit */
	atomic_uint xid;
	atomic_uint n_late_writes;
	atomic_int n_unanswered;        /* calls whose submitter still waits */
	_Atomic uint64_t down_since_ns; /* 0: some connection is up */
	struct ssc_upstream_counters {
		atomic_ullong calls, replies, resent, timeouts, late, refused, bad_replies;
		atomic_ullong connects, bytes_read, bytes_written, per_op[SSC_OP_N];
	} n;
	/* guarded by lock */
	pthread_mutex_t lock;
	pthread_cond_t root_cond;
	bool root_busy, root_known;
	struct ssc_fh root;
	struct ssc_upstream_limits limits;
	unsigned int n_mounts;
	struct cds_list_head late_writes;
};

static inline struct ssc_call_priv *ssc_priv(struct ssc_call *call)
{
	return ssc_call_priv(call);
}

static inline bool ssc_call_moves_data(const struct ssc_call *call)
{
	return call->op == SSC_OP_READ || call->op == SSC_OP_WRITE;
}

bool ssc_conn_start(struct ssc_conn *conn, struct ssc_upstream_nfs3 *up, unsigned int index);
/** @brief Ask the loop thread to look around. Any thread. */
void ssc_conn_kick(struct ssc_conn *conn);
/** @brief After stopping was set: join the thread. */
void ssc_conn_join(struct ssc_conn *conn);
void ssc_conn_fini(struct ssc_conn *conn);
void ssc_conn_submit(struct ssc_conn *conn, struct ssc_call *call);

/* Between conn.c and conn_loop.c; the lock is held where the name says so. */
void ssc_conn_drain_locked(struct ssc_conn *conn, struct cds_list_head *comp);
/** @brief Empty the queue, unless somebody else holds the lock and so will. Lock not held. */
void ssc_conn_combine(struct ssc_conn *conn, struct cds_list_head *comp);
/** @brief Whether calls wait in the queue. For who has just let the lock go. */
bool ssc_conn_has_queued(struct ssc_conn *conn);
/** @brief Whether the loop thread has to do something that no other thread does. */
bool ssc_conn_needs_loop_locked(struct ssc_conn *conn);
bool ssc_conn_service_locked(struct ssc_conn *conn, int revents, struct cds_list_head *comp);
void ssc_conn_finish_locked(struct ssc_conn *conn, struct ssc_call *call,
			    struct cds_list_head *comp);
void ssc_conn_timeouts_locked(struct ssc_conn *conn, uint64_t now, struct cds_list_head *comp);
/** @brief Run completions: with @own only this call's and those that just wake, the others are left
 *         to the loop thread; NULL (loop thread, or no such thread any more) runs them all. */
void ssc_conn_run(struct ssc_conn *conn, struct cds_list_head *comp, struct ssc_call *own);
/** @brief Run done of one completed call, and drop the upstream's reference. */
void ssc_conn_run_done(struct ssc_call_priv *p);
/** @brief Wake the submitter that sleeps on @word. */
void ssc_futex_wake(atomic_uint *word);
bool ssc_conn_pump_try(struct ssc_conn *conn);
void ssc_conn_pump_release(struct ssc_conn *conn);
/** @brief The connection is of no more use, and why. Lock held. */
void ssc_conn_broken_locked(struct ssc_conn *conn, const char *why);
/** @brief Hand the connected socket to a wire. Lock held. */
void ssc_conn_wire_locked(struct ssc_conn *conn);
/** @brief Send a NULL call; its reply sets probe_done or ends is_asking. Lock held. */
void ssc_conn_null_locked(struct ssc_conn *conn);
/** @brief Close the connection; calls in flight become ready again, or are over. Lock held. */
void ssc_conn_close_locked(struct ssc_conn *conn, struct cds_list_head *comp);
void *ssc_conn_loop(void *conn);
/** @brief Complete what came after the loop thread ended. No submitter may be inside any more. */
void ssc_conn_flush(struct ssc_conn *conn);
/** @brief Report late outcomes. Loop thread only, after the completions it ran before. */
void ssc_conn_run_late(struct ssc_conn *conn, struct cds_list_head *late);

/* ---- silence.c ---- */

/** @brief A call got no answer in time, and it is not the call's fault. */
void ssc_upstream_note_silence(struct ssc_upstream_nfs3 *up);
/** @brief Some reply came, or a connection came up. */
void ssc_upstream_note_reply(struct ssc_upstream_nfs3 *up);
/** @brief Whether a NULL call was sent and ought to have been answered by now. */
bool ssc_conn_is_unheard_locked(struct ssc_conn *conn);
/** @brief When a NULL call is due on a connection that is up; UINT64_MAX: not for now. */
uint64_t ssc_conn_ask_time_locked(struct ssc_conn *conn);
/** @brief Send it, if it is due. */
void ssc_conn_ask_locked(struct ssc_conn *conn, uint64_t now);

/* ---- calls.c, replies.c ---- */

/**
 * @brief Send @call with @xid. Lock held.
 *
 * Errors: SSC_E_CONN, the connection is broken; others, the call is at fault and was not sent.
 */
enum ssc_err ssc_calls_issue(struct ssc_wire *w, uint32_t xid, struct ssc_call *call);

/** @brief Send a NULL call. Errors: SSC_E_CONN. */
enum ssc_err ssc_calls_null(struct ssc_wire *w, uint32_t xid);

/**
 * @brief Decode a reply's results into @into, for a call of @call's op and arguments.
 *
 * @is_placed: READ's data is in the caller's buffers already, and not in @bytes.
 */
enum ssc_err ssc_reply_decode(const struct ssc_call *call, const void *bytes, size_t len,
			      bool is_placed, struct ssc_call *into);

/** @brief Where the data of @call's reply goes, if @len bytes of its results tell (struct ssc_wire_ops). */
bool ssc_reply_place(const struct ssc_call *call, const void *results, size_t len,
		     struct ssc_wire_place *place);

/** @brief NFSv3 status of the wire to ours. */
enum ssc_err ssc_reply_status(uint32_t nfsstat3);

/* ---- upstream.c ---- */

/** @brief Some connection came up, or went down: for the breaker and the log. */
void ssc_upstream_note_up(struct ssc_upstream_nfs3 *up, struct ssc_conn *conn);
void ssc_upstream_note_down(struct ssc_upstream_nfs3 *up, struct ssc_conn *conn, const char *why);
/** @brief Whether @call (a WRITE) overlaps one that was answered TIMEDOUT and may still land. */
bool ssc_upstream_write_must_wait(struct ssc_upstream_nfs3 *up, struct ssc_call *call);
void ssc_upstream_late_write_add(struct ssc_upstream_nfs3 *up, struct ssc_call *call);
void ssc_upstream_late_write_del(struct ssc_upstream_nfs3 *up, struct ssc_call *call);

#endif /* SSC_UPSTREAM_INTERNAL_H */
