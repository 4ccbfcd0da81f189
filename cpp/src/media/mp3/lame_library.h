/* The functions of LAME that polymux uses, and access to its state. LAME is compiled twice on
   x86-64: for every processor, and for those with AVX2. Each build fills one table. */
#ifndef POLYMUX_MEDIA_MP3_LAME_LIBRARY_H
#define POLYMUX_MEDIA_MP3_LAME_LIBRARY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lame_global_struct;

enum polymux_lame_rate_control { polymux_lame_cbr, polymux_lame_abr, polymux_lame_vbr };

struct polymux_lame_settings {
    int sample_rate_hz;
    int channels;
    enum polymux_lame_rate_control rate_control;
    int bitrate_kbps;  /* CBR and ABR. */
    float vbr_quality; /* VBR. */
    int quality;       /* 0 to 9; -1: LAME's default. */
};

/* One part of the state on which the next frames depend. */
struct polymux_lame_part {
    const char* name;
    void* data;
    size_t bytes;
};

enum { polymux_lame_max_parts = 24 };

/* LAME found out this while it coded one frame (ABR and VBR). */
struct polymux_lame_demand {
    int needed_bits; /* Before the level of the reservoir limited them. */
    int silent;      /* VBR: LAME treats the frame as "analog silence". */
    int coded[2][2]; /* VBR: granules of channels that are not silent. */
    float pe[2][2];  /* VBR: perceptual entropy. */
};

/* How LAME will begin the next search for the gain of a channel (CBR and ABR; null at VBR). */
struct polymux_lame_search {
    int* gain;        /* OldValue: what the last search found. */
    int* step;        /* CurrentStep. */
    const int* count; /* Searches so far. A silent channel is not searched. */
};

struct polymux_lame {
    const char* (*version)(void);

    /* Returns null if LAME does not support the settings. Not thread-safe: the first call fills
       tables that all encoders of this build share. */
    struct lame_global_struct* (*create)(const struct polymux_lame_settings* settings);
    int (*destroy)(struct lame_global_struct* encoder);

    int (*frame_samples)(const struct lame_global_struct* encoder);
    int (*delay_samples)(const struct lame_global_struct* encoder);
    int (*lowpass_hz)(const struct lame_global_struct* encoder);
    int (*coded_frames)(const struct lame_global_struct* encoder);
    /* Two fields of LAME's tag: its encoding flags with the type of its threshold of hearing, and
       its noise shaping. */
    int (*tag_flags)(const struct lame_global_struct* encoder);
    int (*noise_shaping)(const struct lame_global_struct* encoder);

    /* Write to `room` and return the number of bytes, or a negative error code. */
    int (*encode_s16)(struct lame_global_struct* encoder, const short* left, const short* right,
                      int samples, unsigned char* room, int room_bytes);
    int (*encode_s32)(struct lame_global_struct* encoder, const int* left, const int* right,
                      int samples, unsigned char* room, int room_bytes);
    int (*encode_f32)(struct lame_global_struct* encoder, const float* left, const float* right,
                      int samples, unsigned char* room, int room_bytes);
    int (*empty_reservoir)(struct lame_global_struct* encoder, unsigned char* room, int room_bytes);
    int (*flush)(struct lame_global_struct* encoder, unsigned char* room, int room_bytes);

    /* The demand of frame `number`, counted from 0: one of the newest 256 coded frames. */
    struct polymux_lame_demand (*demand)(const struct lame_global_struct* encoder, int number);

    /* The bits that a frame with this demand may have at a level of the reservoir (ABR and VBR).
       Changes the encoder, so that it can no longer encode. */
    int (*limit_bits)(struct lame_global_struct* encoder, const struct polymux_lame_demand* demand,
                      int level_bits);

    /* Lists the parts of the state between two frames, at most polymux_lame_max_parts, and returns
       their number. Two encoders with the same settings, equal parts and equal searches code equal
       samples to equal frames. The level of the bit reservoir is a part only at a constant bitrate.
       The pointers are valid until the next call. */
    int (*state)(struct lame_global_struct* encoder, struct polymux_lame_part* parts);
    struct polymux_lame_search (*search)(struct lame_global_struct* encoder, int channel);
};

extern const struct polymux_lame polymux_lame_baseline;
extern const struct polymux_lame polymux_lame_avx2;

#ifdef __cplusplus
}
#endif

#endif
