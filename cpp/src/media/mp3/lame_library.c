#include "media/mp3/lame_library.h"

#include <stdarg.h>
#include <string.h>

/* The order of these headers matters to LAME. */
/* clang-format off */
#include "config.h"
#include "lame.h"
#include "machine.h"
#include "encoder.h"
#include "util.h"
#include "quantize_pvt.h"
#include "reservoir.h"
#include "lame_global_flags.h"
/* clang-format on */

static void be_silent(const char* format, va_list arguments) {
    (void)format;
    (void)arguments;
}

static struct lame_global_struct* create(const struct polymux_lame_settings* settings) {
    lame_t encoder = lame_init();
    if (encoder == NULL) return NULL;
    lame_set_errorf(encoder, be_silent);
    lame_set_msgf(encoder, be_silent);
    lame_set_debugf(encoder, be_silent);
    lame_set_num_channels(encoder, settings->channels);
    lame_set_mode(encoder, settings->channels > 1 ? JOINT_STEREO : MONO);
    lame_set_in_samplerate(encoder, settings->sample_rate_hz);
    lame_set_out_samplerate(encoder, settings->sample_rate_hz);
    if (settings->quality >= 0) lame_set_quality(encoder, settings->quality);
    switch (settings->rate_control) {
        case polymux_lame_cbr:
            lame_set_brate(encoder, settings->bitrate_kbps);
            break;
        case polymux_lame_abr:
            lame_set_VBR(encoder, vbr_abr);
            lame_set_VBR_mean_bitrate_kbps(encoder, settings->bitrate_kbps);
            break;
        case polymux_lame_vbr:
            lame_set_VBR(encoder, vbr_default);
            lame_set_VBR_quality(encoder, settings->vbr_quality);
            break;
    }
    lame_set_bWriteVbrTag(encoder, 0);
    lame_set_disable_reservoir(encoder, 0);
    if (lame_init_params(encoder) < 0) {
        lame_close(encoder);
        return NULL;
    }
    return encoder;
}

/* The samples are in LAME's own range, that of 16 bits. */
static int encode_f32(struct lame_global_struct* encoder, const float* left, const float* right,
                      int samples, unsigned char* room, int room_bytes) {
    return lame_encode_buffer_float(encoder, left, right, samples, room, room_bytes);
}

/* As PutLameVBR in VbrTag.c. */
static int tag_flags(const struct lame_global_struct* encoder) {
    const SessionConfig_t* const cfg = &encoder->internal_flags->cfg;
    const int psychoacoustic_model = 1;
    return cfg->ATHtype + (psychoacoustic_model << 4) +
           ((cfg->use_safe_joint_stereo != 0 ? 1 : 0) << 5);
}

static int noise_shaping(const struct lame_global_struct* encoder) {
    return encoder->internal_flags->cfg.noise_shaping;
}

static struct polymux_lame_demand demand(const struct lame_global_struct* encoder, int number) {
    const EncResult_t* const result = &encoder->internal_flags->ov_enc;
    const int at = number % MAX_HEADER_BUF;
    struct polymux_lame_demand found = {.needed_bits = result->demand[at].needed_bits,
                                        .silent = result->demand[at].analog_silence};
    memcpy(found.coded, result->demand[at].coded, sizeof(found.coded));
    memcpy(found.pe, result->demand[at].pe, sizeof(found.pe));
    return found;
}

/* ABR: as calc_target_bits in quantize.c. VBR: as VBR_new_prepare there, and VBR_encode_frame in
 * vbrquantize.c. */
static int limit_bits(struct lame_global_struct* encoder, const struct polymux_lame_demand* demand,
                      int level_bits) {
    lame_internal_flags* const gfc = encoder->internal_flags;
    const SessionConfig_t* const cfg = &gfc->cfg;
    int parts[2][2];
    int mean = 0;
    int frame_limit;
    int bits = 0;
    int limit = 0;
    int granule, channel;

    gfc->sv_enc.ResvSize = level_bits;
    gfc->ov_enc.bitrate_index = cfg->vbr_max_bitrate_index;
    frame_limit = ResvFrameBegin(gfc, &mean);
    if (cfg->vbr == vbr_abr) return frame_limit;
    for (granule = 0; granule < cfg->mode_gr; ++granule) {
        (void)on_pe(gfc, demand->pe, parts[granule], mean, granule, 0);
        for (channel = 0; channel < cfg->channels_out; ++channel) bits += parts[granule][channel];
    }
    for (granule = 0; granule < cfg->mode_gr; ++granule) {
        for (channel = 0; channel < cfg->channels_out; ++channel) {
            if (!demand->coded[granule][channel]) continue;
            if (bits > frame_limit && bits > 0) {
                parts[granule][channel] *= frame_limit;
                parts[granule][channel] /= bits;
            }
            limit += parts[granule][channel];
        }
    }
    return limit;
}

static int is_vbr(const lame_internal_flags* gfc) {
    return gfc->cfg.vbr != vbr_off && gfc->cfg.vbr != vbr_abr;
}

static struct polymux_lame_part* add(struct polymux_lame_part* next, const char* name, void* data,
                                     size_t bytes) {
    next->name = name;
    next->data = data;
    next->bytes = bytes;
    return next + 1;
}

#define ADD(name, value) next = add(next, name, &(value), sizeof(value))

static int state(struct lame_global_struct* encoder, struct polymux_lame_part* parts) {
    lame_internal_flags* const gfc = encoder->internal_flags;
    PsyStateVar_t* const psy = &gfc->sv_psy;
    EncStateVar_t* const enc = &gfc->sv_enc;
    QntStateVar_t* const qnt = &gfc->sv_qnt;
    struct polymux_lame_part* next = parts;
    int channel;

    /* Adjustment of the absolute threshold of hearing (adjust_ATH). */
    ADD("adjust_factor", gfc->ATH->adjust_factor);
    ADD("adjust_limit", gfc->ATH->adjust_limit);

    /* Psychoacoustic model: thresholds of earlier granules and results that are used one granule
     * later. */
    ADD("nb_l1", psy->nb_l1);
    ADD("nb_l2", psy->nb_l2);
    ADD("thm", psy->thm);
    ADD("en", psy->en);
    ADD("loudness_sq_save", psy->loudness_sq_save);
    ADD("tot_ener", psy->tot_ener);
    ADD("last_en_subshort", psy->last_en_subshort);
    ADD("last_attacks", psy->last_attacks);
    ADD("blocktype_old", psy->blocktype_old);
    ADD("masking_lower", qnt->masking_lower);

    /* Filter bank: samples that wait, and subbands of the last granule. A frame leaves its last
     * granule in place 0. */
    ADD("mf_size", enc->mf_size);
    for (channel = 0; channel < gfc->cfg.channels_out; ++channel) {
        next = add(next, "mfbuf", enc->mfbuf[channel], (size_t)enc->mf_size * sizeof(sample_t));
        ADD("sb_sample", enc->sb_sample[channel][0]);
    }

    /* Bits: their distribution over frames, padding, and the reservoir. */
    if (!is_vbr(gfc)) ADD("pefirbuf", enc->pefirbuf);
    if (gfc->cfg.vbr == vbr_off) {
        ADD("slot_lag", enc->slot_lag);
        ADD("ResvSize", enc->ResvSize);
    }
    return (int)(next - parts);
}

static struct polymux_lame_search search(struct lame_global_struct* encoder, int channel) {
    QntStateVar_t* const qnt = &encoder->internal_flags->sv_qnt;
    struct polymux_lame_search found = {NULL, NULL, NULL};
    if (!is_vbr(encoder->internal_flags)) {
        found.gain = &qnt->OldValue[channel];
        found.step = &qnt->CurrentStep[channel];
        found.count = &qnt->searches[channel];
    }
    return found;
}

const struct polymux_lame POLYMUX_LAME_TABLE = {
    .version = get_lame_version,
    .create = create,
    .destroy = lame_close,
    .frame_samples = lame_get_framesize,
    .delay_samples = lame_get_encoder_delay,
    .lowpass_hz = lame_get_lowpassfreq,
    .coded_frames = lame_get_frameNum,
    .tag_flags = tag_flags,
    .noise_shaping = noise_shaping,
    .encode_s16 = lame_encode_buffer,
    .encode_s32 = lame_encode_buffer_int,
    .encode_f32 = encode_f32,
    .empty_reservoir = lame_encode_flush_nogap,
    .flush = lame_encode_flush,
    .demand = demand,
    .limit_bits = limit_bits,
    .state = state,
    .search = search,
};
