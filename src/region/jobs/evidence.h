/* By what the worker judges whether next to nothing of a new block is touched. Only the worker; no
 * lock held. */
#ifndef FL_REGION_EVIDENCE_H
#define FL_REGION_EVIDENCE_H

#include "region/region.h"

/* Samples in one look at all slots: half a millisecond each. */
enum { FL_EVIDENCE_PICKS = 16 };

/* A slot's block as it was a moment ago. */
struct fl_thin_view {
    struct fl_range around; /* the huge pages that it lies in; len 0: it is gone */
    struct fl_range range;  /* those of the slot: it may have none of its own */
    size_t len;             /* of the block */
    bool thin;              /* it is marked so */
    uint32_t turn;
};

/* At the begin of a look. Lock: region. */
void fl_evidence_count_kinds(struct fl_thin *t);
/* From the cursor on. */
struct fl_range fl_evidence_rest(const struct fl_thin_seen *k, struct fl_range range);
/* Looks once more at the samples that were picked before, and picks others. */
void fl_evidence_gather(struct fl_region *r, struct fl_thin_seen *k, const struct fl_thin_view *v);
/* Are there samples that want a second look? */
bool fl_evidence_is_pending(const struct fl_thin_seen *k);
/* Have many looks taught nothing new? */
bool fl_evidence_is_scarce(const struct fl_thin_seen *k);
/* Does the block show by itself that it is thin, which is noted for its kind; do others of its
 * kind, of which there are many, and nothing of it speaks against that? */
bool fl_evidence_is_own(const struct fl_thin_seen *k, const struct fl_thin_view *v);
void fl_evidence_note_own(struct fl_region *r, const struct fl_thin_view *v);
bool fl_evidence_is_of_kind(struct fl_region *r, const struct fl_thin_seen *k,
                            const struct fl_thin_view *v);
/* Had enough blocks of about that length shown that they are, when the look began? */
bool fl_evidence_is_kind_thin(const struct fl_thin *t, size_t len);
/* Of a thin block: does it fill after all? */
bool fl_evidence_fills(struct fl_region *r, struct fl_thin_seen *k, const struct fl_thin_view *v);

#endif
