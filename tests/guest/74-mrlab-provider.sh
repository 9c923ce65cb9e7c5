#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# mrlab's provider for libibverbs: what it does itself, beside passing commands on.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

check "the driver loads" insmod "$MRSCOPE_KMOD/mrlab/mrlab.ko"
run mrlab_provider_answers mrlab0
is "the provider finds its device" "0 " "$ended $(cat "$tmp/err")"
cp "$tmp/out" "$tmp/answers"

answer() { # QUESTION: what the provider said
	awk -v question="$1" '$1 == question { sub(/^[^ ]* /, ""); print }' "$tmp/answers"
}
answers() { # QUESTION WANTED
	is "$1" "$2" "$(answer "$1")"
}

answers stages 0
answers stages.size same
answers stages.sum within
answers stages.table_covers yes
answers rereg.access 0
answers rereg.access.rkey same
answers rereg.translation 0
answers rereg.stages 0
answers rereg.stages.sg_entries fewer
answers qp_ex 0
answers qp_ex.inline "as asked"
answers qp_ex.extended no
answers qp_ex.send_ops EOPNOTSUPP
answers cq_ex.standard 0
answers cq_ex.single_threaded 0
answers cq_ex.timestamp EOPNOTSUPP
answers cq_ex.overrun EOPNOTSUPP
answers cq_ex.empty ENOENT
answers cq_ex.sent "1 2"
answers cq_ex.received "1 2"
answers cq_ex.whole yes
# From memory that is not registered, and was written over after the post.
answers inline cccccccccccccccc
answers poll all
answers poll.none 0
answers resize.less_than_held EINVAL
answers resize.more 0
answers resize.cqe "as asked"
answers resize.received "2 3"

# Another provider's region is refused, not misread.
run mrlab_provider_answers rxe0
is "rxe0's region has no stages" EOPNOTSUPP "$(awk '$1 == "stages" { print $2 }' "$tmp/out")"

# What it exports, and needs: programs in C load it.
library=$(echo "$MRSCOPE_BUILD"/provider/libmrlab-rdmav*.so)
is "it needs libibverbs and libc alone" "libc libibverbs" "$(readelf -dW "$library" |
	sed -n 's/.*(NEEDED).*\[\([a-z]*\)\.so.*/\1/p' | sort | xargs)"

check "the driver can go" rmmod mrlab
finish
