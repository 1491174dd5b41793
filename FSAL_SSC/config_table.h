/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * config_table.h - every key that an administrator can write, once.
 *
 * The rows make Ganesha's tables of items (config.c), the structures that they are read into
 * (below), and the listing that tests hold against the README and the samples (config_table.c).
 *
 * Row        X(kind, key, member, default, min, max, unit, takes effect, what it does)
 * Kinds      BOOL; UI16, UI32, UI64: numbers; STR: text, default NULL = none, min and max are lengths
 * Effect     start   when the server starts
 *            export  when the export is made (remove it and add it again to change the key)
 *            live    also when the export is updated
 */
#ifndef SSC_CONFIG_TABLE_H
#define SSC_CONFIG_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What one READ or WRITE may carry: libnfs takes no record beyond 1 MiB and a header. */
#define SSC_CONFIG_IO_MAX 1048576

/* libnfs decodes the entries of a reply one within the other, so its size is stack. */
#define SSC_CONFIG_READDIR_MAX 65536

/* A day, for times: more is a mistake. */
#define SSC_CONFIG_MS_MAX 86400000

/* clang-format off */

#define SSC_CONFIG_MODULE(X) \
	X(BOOL, Tune_Malloc, tune_malloc, true, 0, 1, "", "start", \
	  "Keep glibc's malloc from giving large buffers back to the kernel after each use (whole server)") \
	X(UI64, Memory_Max_Bytes, memory_max_bytes, 536870912, 16777216, 1099511627776, "bytes", "start", \
	  "Bound on the data that all re-exports together keep in flight") \
	X(BOOL, Enable_Copy, enable_copy, true, 0, 1, "", "start", \
	  "Serve NFSv4.2 server-side copy, and mend what the server's own NFSv4.2 operations get wrong; false leaves the server as it is") \
	X(UI64, Copy_Sync_Max_Bytes, copy_sync_max_bytes, 4194304, 65536, 1073741824, "bytes", "start", \
	  "A COPY of more is asynchronous, where the client allows that and can be called back") \
	X(UI32, Copy_Sync_Max_Ms, copy_sync_max_ms, 1000, 10, 60000, "ms", "start", \
	  "After this time a synchronous COPY is answered with what it has done so far") \
	X(UI32, Copy_Chunk_Bytes, copy_chunk_bytes, 1048576, 65536, SSC_CONFIG_IO_MAX, "bytes", "start", \
	  "Bytes that a copy reads and writes at a time") \
	X(UI32, Copy_Inflight_Max, copy_inflight_max, 8, 1, 256, "", "start", \
	  "Chunks of one copy in flight") \
	X(UI64, Copy_Inflight_Bytes, copy_inflight_bytes, 16777216, SSC_CONFIG_IO_MAX, 17179869184, "bytes", "start", \
	  "Bound on the data of all copies in flight") \
	X(UI32, Copy_Max, copy_max, 64, 0, 65536, "", "start", \
	  "Asynchronous copies at a time; further ones are served synchronously. 0 = none is asynchronous") \
	X(UI32, Copy_Max_Per_Client, copy_max_per_client, 16, 1, 65536, "", "start", \
	  "Of these for one client") \
	X(BOOL, Copy_Strict_Range, copy_strict_range, false, 0, 1, "", "start", \
	  "Refuse to copy beyond the end of the source (INVAL), as RFC 7862 says; else copy what there is, as clients expect")

#define SSC_CONFIG_EXPORT(X) \
	X(STR, Server, server, NULL, 1, 253, "", "export", \
	  "The upstream server: a name, an IPv4 or an IPv6 address") \
	X(UI16, Port, port, 2049, 0, 65535, "", "export", \
	  "Its NFS port; 0 = ask its portmapper") \
	X(UI16, Mount_Port, mount_port, 0, 0, 65535, "", "export", \
	  "Its MOUNT port; 0 = ask its portmapper") \
	X(STR, Remote_Path, remote_path, NULL, 1, 4095, "", "export", \
	  "The path that the upstream exports; none = the Path of this export") \
	X(UI32, Connections, connections, 2, 1, 16, "", "export", \
	  "TCP connections to the upstream") \
	X(UI32, Read_Max_Bytes, read_max_bytes, 1048576, 4096, SSC_CONFIG_IO_MAX, "bytes", "export", \
	  "Largest READ sent to the upstream") \
	X(UI32, Write_Max_Bytes, write_max_bytes, 1048576, 4096, SSC_CONFIG_IO_MAX, "bytes", "export", \
	  "Largest WRITE sent to the upstream") \
	X(UI32, Readdir_Max_Bytes, readdir_max_bytes, 65536, 4096, SSC_CONFIG_READDIR_MAX, "bytes", "export", \
	  "Largest reply of a READDIRPLUS asked from the upstream") \
	X(UI32, Upstream_Timeout_Ms, upstream_timeout_ms, 4000, 100, SSC_CONFIG_MS_MAX, "ms", "live", \
	  "After this time without an answer a client is told to come back; the call goes on") \
	X(UI32, Upstream_Dead_Ms, upstream_dead_ms, 60000, 1000, SSC_CONFIG_MS_MAX, "ms", "export", \
	  "After this time without an answer a connection is given up and made anew") \
	X(UI32, Connect_Timeout_Ms, connect_timeout_ms, 5000, 100, SSC_CONFIG_MS_MAX, "ms", "export", \
	  "Longest time that one attempt to connect takes") \
	X(BOOL, Use_Privileged_Port, use_privileged_port, true, 0, 1, "", "export", \
	  "Connect from a port below 1024, as most servers demand") \
	X(UI32, Waiting_Max, waiting_max, 64, 1, 65536, "", "export", \
	  "Calls that wait for an upstream that is away; further ones are told to come back at once") \
	X(UI32, Upstream_Id, upstream_id, 0, 0, 1073741823, "", "export", \
	  "Number that file handles name the upstream by; 0 = made from Server and Port. Keep it when a server moves") \
	X(BOOL, Allow_Copy, allow_copy, true, 0, 1, "", "live", \
	  "Serve COPY from and to this export; false = clients copy by reading and writing")

/* clang-format on */

#define SSC_CONFIG_MEMBER_BOOL                    bool
#define SSC_CONFIG_MEMBER_UI16                    uint16_t
#define SSC_CONFIG_MEMBER_UI32                    uint32_t
#define SSC_CONFIG_MEMBER_UI64                    uint64_t
#define SSC_CONFIG_MEMBER_STR                     char *

#define SSC_CONFIG_MEMBER(kind, key, member, ...) SSC_CONFIG_MEMBER_##kind member;

/* The block SSC { }. */
struct ssc_module_config {
	SSC_CONFIG_MODULE(SSC_CONFIG_MEMBER)
};

/* The block EXPORT { FSAL { } }, and the FSAL block within it. */
struct ssc_export_config {
	SSC_CONFIG_EXPORT(SSC_CONFIG_MEMBER)
	struct {
		char *name; /* NULL: no inner block */
		void *node; /* the host's, valid while it reads the configuration */
	} inner;
};

/**
 * @brief Print the rows as block, key, type, default, min, max, unit, effect and text, with a tab
 *        between them and a line for each. Any thread.
 */
void ssc_config_table_print(FILE *to);

#endif /* SSC_CONFIG_TABLE_H */
