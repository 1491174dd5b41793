#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Random compounds around COPY and CLONE, whole and damaged, on a re-export and a stack: the server goes
# on, and its memory does not grow. FUZZ_S lasts longer.
# shellcheck source=tests/integration/functions.sh
. "$(dirname "$0")/functions.sh"
# shellcheck source=tests/integration/fuzzed.sh
. "$(dirname "$0")/fuzzed.sh"

fuzzed_conf
start re
seconds=${FUZZ_S:-20}
check "$seconds s of random compounds (SSC_SEED=$seed)" fuzz "$seconds"
sed 's/^/# /' "$report"
check "the server lives" is_running re
check "its memory did not grow" at_most "$(awk '/^grown/ { print $2 }' "$report")" 24576
check "it still serves" c3 re stat /a
refuse_log re ':CRIT :.*SSC'
check "and ends when asked" stop re 15
