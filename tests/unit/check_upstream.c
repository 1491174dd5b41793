/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * check_upstream.c - every operation of the upstream on libnfs, against a server in memory.
 *
 * Beside it: check_upstream_mount.c (first contact), _share.c (callers and connections), _faults.c
 * (broken connections, wrong replies), _late.c (deadlines), _limits.c (servers away or silent, stop),
 * _budget.c (data in flight).
 */
#include "upstream_unit.h"

#define MIB (1u << 20)

/* ---- names ---- */

static struct asked *ask_create(const char *name, enum ssc_create_how how)
{
	struct asked *a = ask(SSC_OP_CREATE, name);

	a->call->arg.create.how = how;
	a->call->arg.create.set = (struct ssc_sattr){.set_mode = true, .mode = 0640};
	return a;
}

START_TEST(create_makes_a_file)
{
	struct asked *a = ask_create("f", SSC_CREATE_GUARDED);

	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.object.fh.len, root_fh.len);
	ck_assert(a->call->res.object.has_attrs);
	ck_assert_int_eq(a->call->res.object.attrs.type, SSC_FT_REG);
	ck_assert_uint_eq(a->call->res.object.attrs.mode, 0640);
	ck_assert_uint_eq(a->call->res.object.attrs.uid, 10);
	ck_assert_uint_eq(a->call->res.object.attrs.gid, 20);
	ck_assert_uint_eq(a->call->res.object.attrs.nlink, 1);
	ck_assert(a->call->has_attrs);
	ck_assert_int_eq(a->call->attrs.type, SSC_FT_DIR);
	ck_assert(!a->call->retried);
	forget(a);
	ck_assert_int_eq(run_and_forget(ask_create("f", SSC_CREATE_GUARDED)), SSC_E_EXIST);
	ck_assert_int_eq(run_and_forget(ask_create("f", SSC_CREATE_UNCHECKED)), SSC_OK);
}
END_TEST

START_TEST(create_passes_the_verifier_on)
{
	struct asked *a;
	int i;

	for (i = 0; i < 3; i++) {
		a = ask_create("x", SSC_CREATE_EXCLUSIVE);
		memcpy(a->call->arg.create.verf, i < 2 ? "\0\1\2\3\4\5\6\7" : "\0\1\2\3\4\5\6\0",
		       8);
		ck_assert_int_eq(run(a), i < 2 ? SSC_OK : SSC_E_EXIST);
		forget(a);
	}
}
END_TEST

START_TEST(lookup_finds_and_does_not)
{
	struct asked *a = ask(SSC_OP_LOOKUP, "f");

	nfs3_server_poke(server, "f", "12345", 5);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_int_eq(a->call->res.object.attrs.type, SSC_FT_REG);
	ck_assert_uint_eq(a->call->res.object.attrs.size, 5);
	ck_assert_uint_eq(a->call->res.object.attrs.used, 512);
	ck_assert_uint_eq(a->call->res.object.attrs.fsid, 0x55);
	ck_assert_uint_eq(a->call->res.object.attrs.fileid, 101);
	ck_assert_uint_ne(a->call->res.object.attrs.ctime.s, 0);
	forget(a);
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_LOOKUP, "g")), SSC_E_NOENT);
}
END_TEST

START_TEST(a_name_of_255_bytes_goes_through)
{
	char name[SSC_NAME_MAX + 1];

	memset(name, 'n', SSC_NAME_MAX);
	name[SSC_NAME_MAX] = '\0';
	ck_assert_int_eq(run_and_forget(ask_create(name, SSC_CREATE_GUARDED)), SSC_OK);
	ck_assert_uint_eq(fh_of(name).len, root_fh.len);
}
END_TEST

START_TEST(directories_come_and_go)
{
	struct asked *a = ask(SSC_OP_MKDIR, "d");

	a->call->arg.make.set = (struct ssc_sattr){.set_mode = true,
						   .mode = 0751,
						   .set_uid = true,
						   .uid = 5,
						   .set_gid = true,
						   .gid = 6};
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_int_eq(a->call->res.object.attrs.type, SSC_FT_DIR);
	ck_assert_uint_eq(a->call->res.object.attrs.mode, 0751);
	ck_assert_uint_eq(a->call->res.object.attrs.uid, 5);
	ck_assert_uint_eq(a->call->res.object.attrs.gid, 6);
	forget(a);
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_REMOVE, "d")), SSC_E_ISDIR);
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_RMDIR, "d")), SSC_OK);
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_RMDIR, "d")), SSC_E_NOENT);
}
END_TEST

static const size_t target_lengths[] = {1, 100, 4000, SSC_LINK_MAX};

START_TEST(symlinks_keep_their_target)
{
	size_t len = target_lengths[_i];
	char target[SSC_LINK_MAX + 1];
	struct asked *a = ask(SSC_OP_SYMLINK, "l");
	struct ssc_fh fh;

	memset(target, 't', len);
	target[0] = '/';
	target[len] = '\0';
	ck_assert_int_eq(ssc_call_set_text(a->call, target), SSC_OK);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_int_eq(a->call->res.object.attrs.type, SSC_FT_LNK);
	fh = a->call->res.object.fh;
	forget(a);
	a = ask(SSC_OP_READLINK, NULL);
	a->call->fh = fh;
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_str_eq(a->call->res.link.target, target);
	ck_assert(a->call->has_attrs);
	ck_assert_uint_eq(a->call->attrs.size, len);
	forget(a);
}
END_TEST

static const enum ssc_ftype node_types[] = {SSC_FT_CHR, SSC_FT_BLK, SSC_FT_FIFO, SSC_FT_SOCK};

START_TEST(nodes_keep_their_kind)
{
	bool is_device = node_types[_i] == SSC_FT_CHR || node_types[_i] == SSC_FT_BLK;
	struct asked *a = ask(SSC_OP_MKNOD, "n");

	a->call->arg.make.type = node_types[_i];
	a->call->arg.make.set = (struct ssc_sattr){.set_mode = true, .mode = 0600};
	a->call->arg.make.rdev_major = 7;
	a->call->arg.make.rdev_minor = 300;
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_int_eq(a->call->res.object.attrs.type, node_types[_i]);
	ck_assert_uint_eq(a->call->res.object.attrs.mode, 0600);
	ck_assert_uint_eq(a->call->res.object.attrs.rdev_major, is_device ? 7 : 0);
	ck_assert_uint_eq(a->call->res.object.attrs.rdev_minor, is_device ? 300 : 0);
	forget(a);
}
END_TEST

START_TEST(links_and_renames)
{
	struct asked *a = ask(SSC_OP_LINK, "b");
	struct ssc_fh dir;

	nfs3_server_poke(server, "a", "x", 1);
	a->call->fh = fh_of("a");
	a->call->arg.rename.to_dir = root_fh;
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert(a->call->has_attrs);
	ck_assert_uint_eq(a->call->attrs.nlink, 2);
	forget(a);
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_MKDIR, "d")), SSC_OK);
	dir = fh_of("d");
	a = ask(SSC_OP_RENAME, "b");
	ck_assert_int_eq(ssc_call_set_text(a->call, "c"), SSC_OK);
	a->call->arg.rename.to_dir = dir;
	ck_assert_int_eq(run(a), SSC_OK);
	forget(a);
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_LOOKUP, "b")), SSC_E_NOENT);
	a = ask(SSC_OP_LOOKUP, "c");
	a->call->fh = dir;
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.object.attrs.nlink, 2);
	forget(a);
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_RMDIR, "d")), SSC_E_NOTEMPTY);
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_REMOVE, "a")), SSC_OK);
}
END_TEST

/* Each page by the cookie and verifier of the last; @max_bytes bounds a page. */
static unsigned int list(uint32_t max_bytes, unsigned int n_expected, unsigned int *n_pages)
{
	bool *seen = calloc(n_expected, sizeof(*seen));
	uint64_t cookie = 0;
	uint8_t verf[SSC_VERF_BYTES] = {0};
	unsigned int n = 0, number, i;
	bool eof = false;

	for (*n_pages = 0; !eof; ++*n_pages) {
		struct asked *a = ask(SSC_OP_READDIRPLUS, NULL);

		a->call->arg.readdir.cookie = cookie;
		a->call->arg.readdir.max_bytes = max_bytes;
		memcpy(a->call->arg.readdir.verf, verf, sizeof(verf));
		ck_assert_int_eq(run(a), SSC_OK);
		for (i = 0; i < a->call->res.readdir.n_ents; i++) {
			const struct ssc_dirent *e = &a->call->res.readdir.ents[i];

			cookie = e->cookie;
			ck_assert(e->has_attrs);
			ck_assert_uint_eq(e->fileid, e->attrs.fileid);
			ck_assert_uint_eq(e->fh.len, root_fh.len);
			if (e->name[0] == '.')
				continue;
			ck_assert_int_eq(sscanf(e->name, "file %u", &number), 1);
			ck_assert_uint_lt(number, n_expected);
			ck_assert(!seen[number]);
			seen[number] = true;
			n++;
		}
		ck_assert(i > 0 || a->call->res.readdir.eof);
		eof = a->call->res.readdir.eof;
		memcpy(verf, a->call->res.readdir.verf, sizeof(verf));
		forget(a);
	}
	free(seen);
	return n;
}

START_TEST(directories_are_listed_page_by_page)
{
	unsigned int n_pages, i;
	char name[32];

	ck_assert_uint_eq(list(4096, 0, &n_pages), 0);
	ck_assert_uint_eq(n_pages, 1);
	for (i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		nfs3_server_poke(server, name, "", 0);
	}
	ck_assert_uint_eq(list(4096, 500, &n_pages), 500);
	ck_assert_uint_gt(n_pages, 5);
	ck_assert_uint_eq(list(64 << 10, 500, &n_pages), 500);
	ck_assert_uint_lt(n_pages, 4);
}
END_TEST

/* ---- attributes ---- */

START_TEST(attributes_are_set)
{
	struct asked *a = ask(SSC_OP_SETATTR, NULL);

	nfs3_server_poke(server, "f", "12345", 5);
	a->call->fh = fh_of("f");
	a->call->arg.setattr.set = (struct ssc_sattr){
		.set_mode = true,
		.mode = 04711,
		.set_size = true,
		.size = 3,
		.set_uid = true,
		.uid = 1,
		.set_gid = true,
		.gid = 2,
		.atime_how = SSC_TIME_CLIENT,
		.atime = {.s = 100, .ns = 7},
		.mtime_how = SSC_TIME_SERVER,
	};
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert(a->call->has_attrs);
	ck_assert_uint_eq(a->call->attrs.mode, 04711);
	ck_assert_uint_eq(a->call->attrs.size, 3);
	ck_assert_uint_eq(a->call->attrs.uid, 1);
	ck_assert_uint_eq(a->call->attrs.gid, 2);
	ck_assert_int_eq(a->call->attrs.atime.s, 100);
	ck_assert_uint_eq(a->call->attrs.atime.ns, 7);
	ck_assert_int_ne(a->call->attrs.mtime.s, 0);
	forget(a);
}
END_TEST

START_TEST(attributes_that_are_not_set_stay)
{
	struct asked *a = ask(SSC_OP_SETATTR, NULL);

	nfs3_server_poke(server, "f", "12345", 5);
	a->call->fh = fh_of("f");
	a->call->arg.setattr.set = (struct ssc_sattr){.mode = 0, .size = 0, .uid = 9};
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->attrs.mode, 0644);
	ck_assert_uint_eq(a->call->attrs.size, 5);
	ck_assert_uint_eq(a->call->attrs.uid, 0);
	forget(a);
}
END_TEST

START_TEST(getattr_of_what_is_gone_is_stale)
{
	struct asked *a = ask(SSC_OP_GETATTR, NULL);

	nfs3_server_poke(server, "f", "x", 1);
	a->call->fh = fh_of("f");
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_REMOVE, "f")), SSC_OK);
	ck_assert_int_eq(run(a), SSC_E_STALE);
	ck_assert(!a->call->has_attrs);
	forget(a);
}
END_TEST

START_TEST(figures_of_the_file_system)
{
	struct asked *a = ask(SSC_OP_FSSTAT, NULL);

	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.fsstat.total_bytes, 1 * MIB);
	ck_assert_uint_eq(a->call->res.fsstat.free_bytes, 2 * MIB);
	ck_assert_uint_eq(a->call->res.fsstat.avail_bytes, 3 * MIB);
	ck_assert_uint_eq(a->call->res.fsstat.total_files, 4 * MIB);
	ck_assert_uint_eq(a->call->res.fsstat.free_files, 5 * MIB);
	ck_assert_uint_eq(a->call->res.fsstat.avail_files, 6 * MIB);
	forget(a);
	a = ask(SSC_OP_FSINFO, NULL);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.fsinfo.rtmax, MIB);
	ck_assert_uint_eq(a->call->res.fsinfo.dtpref, 8192);
	ck_assert(a->call->res.fsinfo.can_link && a->call->res.fsinfo.can_symlink);
	ck_assert(a->call->res.fsinfo.homogeneous && a->call->res.fsinfo.can_settime);
	forget(a);
	a = ask(SSC_OP_PATHCONF, NULL);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.pathconf.linkmax, 3000);
	ck_assert_uint_eq(a->call->res.pathconf.name_max, 255);
	ck_assert(a->call->res.pathconf.no_trunc && a->call->res.pathconf.chown_restricted);
	ck_assert(!a->call->res.pathconf.case_insensitive);
	ck_assert(a->call->res.pathconf.case_preserving);
	forget(a);
	ck_assert_int_eq(run_and_forget(ask(SSC_OP_NULL, NULL)), SSC_OK);
}
END_TEST

/* ---- data ---- */

START_TEST(data_comes_back_as_it_was_written)
{
	static uint8_t out[MIB], in[MIB];
	struct iovec parts[3] = {{out, 1}, {out + 1, 4095}, {out + 4096, MIB - 4096}};
	struct iovec back[2] = {{in, MIB - 3}, {in + MIB - 3, 3}};
	uint64_t random = unit_seed("data_comes_back_as_it_was_written");
	struct asked *a;
	struct ssc_fh fh;
	size_t i;

	for (i = 0; i < MIB; i += 8) {
		uint64_t r = unit_random(&random);

		memcpy(out + i, &r, 8);
	}
	nfs3_server_poke(server, "f", "", 0);
	fh = fh_of("f");
	a = ask_io(SSC_OP_WRITE, &fh, 7, parts);
	a->call->arg.io.count = MIB;
	a->call->arg.io.n_iov = 3;
	a->call->arg.io.stable = SSC_FILE_SYNC;
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.io.count, MIB);
	ck_assert_int_eq(a->call->res.io.committed, SSC_FILE_SYNC);
	ck_assert(a->call->has_attrs);
	ck_assert_uint_eq(a->call->attrs.size, MIB + 7);
	forget(a);
	a = ask_io(SSC_OP_READ, &fh, 7, back);
	a->call->arg.io.count = MIB;
	a->call->arg.io.n_iov = 2;
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.io.count, MIB);
	ck_assert(a->call->res.io.eof);
	ck_assert(memcmp(in, out, MIB) == 0);
	forget(a);
}
END_TEST

START_TEST(reads_end_at_the_end)
{
	char in[16] = "################";
	struct iovec iov = {in, 8};
	struct ssc_fh fh;
	struct asked *a;

	nfs3_server_poke(server, "f", "0123456789", 10);
	fh = fh_of("f");
	a = ask_io(SSC_OP_READ, &fh, 4, &iov);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.io.count, 6);
	ck_assert(a->call->res.io.eof);
	ck_assert_mem_eq(in, "456789##########", 16);
	forget(a);
	iov.iov_len = 2;
	a = ask_io(SSC_OP_READ, &fh, 0, &iov);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert(!a->call->res.io.eof);
	forget(a);
	a = ask_io(SSC_OP_READ, &fh, 1000, &iov);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_uint_eq(a->call->res.io.count, 0);
	ck_assert(a->call->res.io.eof);
	forget(a);
}
END_TEST

START_TEST(verifiers_tell_of_a_crash)
{
	char out[5] = "lost?";
	uint8_t verf[SSC_VERF_BYTES];
	struct iovec iov = {out, 5};
	struct ssc_fh fh;
	struct asked *a;
	size_t len;

	nfs3_server_poke(server, "f", "", 0);
	fh = fh_of("f");
	a = ask_io(SSC_OP_WRITE, &fh, 0, &iov);
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_int_eq(a->call->res.io.committed, SSC_UNSTABLE);
	memcpy(verf, a->call->res.io.verf, sizeof(verf));
	forget(a);
	a = ask_io(SSC_OP_COMMIT, &fh, 0, &(struct iovec){NULL, 0});
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_mem_eq(a->call->res.io.verf, verf, sizeof(verf));
	forget(a);
	a = ask_io(SSC_OP_WRITE, &fh, 5, &iov);
	ck_assert_int_eq(run_and_forget(a), SSC_OK);
	nfs3_server_crash(server);
	a = ask_io(SSC_OP_COMMIT, &fh, 0, &(struct iovec){NULL, 0});
	ck_assert_int_eq(run(a), SSC_OK);
	ck_assert_mem_ne(a->call->res.io.verf, verf, sizeof(verf));
	forget(a);
	ck_assert(nfs3_server_peek(server, "f", out, sizeof(out), &len));
	ck_assert_uint_eq(len, 5); /* what was committed, and not the rest */
}
END_TEST

static void add_names(Suite *suite)
{
	TCase *names = add_case(suite, "names", setup_both);

	tcase_add_test(names, create_makes_a_file);
	tcase_add_test(names, create_passes_the_verifier_on);
	tcase_add_test(names, lookup_finds_and_does_not);
	tcase_add_test(names, a_name_of_255_bytes_goes_through);
	tcase_add_test(names, directories_come_and_go);
	tcase_add_loop_test(names, symlinks_keep_their_target, 0, 4);
	tcase_add_loop_test(names, nodes_keep_their_kind, 0, 4);
	tcase_add_test(names, links_and_renames);
	tcase_add_test(names, directories_are_listed_page_by_page);
}

int main(void)
{
	Suite *suite = suite_create("upstream");
	TCase *attributes = add_case(suite, "attributes", setup_both);
	TCase *data = add_case(suite, "data", setup_both);

	add_names(suite);
	tcase_add_test(attributes, attributes_are_set);
	tcase_add_test(attributes, attributes_that_are_not_set_stay);
	tcase_add_test(attributes, getattr_of_what_is_gone_is_stale);
	tcase_add_test(attributes, figures_of_the_file_system);
	tcase_add_test(data, data_comes_back_as_it_was_written);
	tcase_add_test(data, reads_end_at_the_end);
	tcase_add_test(data, verifiers_tell_of_a_crash);
	return unit_main(suite);
}
