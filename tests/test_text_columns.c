/* How wide text is on a terminal: the right answers are those of Unicode (East Asian Width, combining marks). */
#include "tests/test_case.h"

#include <locale.h>
#include <string.h>

#include "common/text_columns.h"
#include "common/utf8.h"

static const struct {
    const char *text;
    size_t columns;
} samples[] = {
    { "", 0 },
    { "decode[10]", 10 },
    { "\xc3\xa9\xc2\xb1\xce\xa9", 3 },     /* é ± Ω: of ambiguous width, so narrow */
    { "\xe8\xae\xad\xe7\xbb\x83", 4 },     /* 训练 */
    { "\xe6\x97\xa5\xe6\x9c\xac.mp4", 8 }, /* 日本.mp4 */
    { "\xe3\x81\x82\xe3\x82\xa2", 4 },     /* hiragana, katakana */
    { "\xef\xbd\xb1", 1 },                 /* halfwidth katakana */
    { "\xef\xbc\xa1", 2 },                 /* fullwidth A */
    { "\xea\xb0\x80", 2 },                 /* a syllable of Hangul */
    { "\xe1\x84\x80\xe1\x85\xa1", 2 },     /* the same in two parts, as some file systems store it */
    { "e\xcc\x81", 1 },                    /* e with a combining accent */
    { "\xe3\x81\x8b\xe3\x82\x99", 2 },     /* ka with a combining mark */
    { "\xf0\x9f\x8e\xac", 2 },             /* an emoji */
    { "\xf0\xa0\x80\x80", 2 },             /* beyond the first plane */
    { "\xe2\x80\xa6", 1 },                 /* … */
    { "\xff\xfe", 2 },                     /* no UTF-8: a column for each byte */
    { "\xe6\x97", 2 },                     /* half a character */
};

enum { NUM_SAMPLES = sizeof samples / sizeof samples[0] };

TEST_CASE(columns_are_those_of_unicode_in_any_locale)
{
    static const char *const locales[] = { "C", "POSIX", "C.UTF-8", "" };
    for (size_t l = 0; l < sizeof locales / sizeof locales[0]; l++) {
        if (!setlocale(LC_ALL, locales[l]))
            continue;
        for (size_t i = 0; i < NUM_SAMPLES; i++)
            if (weir__text_columns(samples[i].text, strlen(samples[i].text)) != samples[i].columns)
                fail_msg("sample %zu in locale \"%s\": %zu columns, not %zu", i, locales[l],
                         weir__text_columns(samples[i].text, strlen(samples[i].text)), samples[i].columns);
    }
    setlocale(LC_ALL, "C");
}

TEST_CASE(the_locale_of_the_thread_stays)
{
    locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(own);
    weir__text_columns(samples[3].text, strlen(samples[3].text));
    assert_true(uselocale(before) == own);
    freelocale(own);
}

/* Each sample is cut to each width: never half a character, never wider, and no whole character that fits is left out. */
TEST_CASE(text_is_cut_between_characters)
{
    for (size_t i = 0; i < NUM_SAMPLES; i++) {
        const char *text = samples[i].text;
        for (size_t columns = 0; columns <= samples[i].columns + 1; columns++) {
            size_t bytes = weir__text_cut(text, columns), length = weir__utf8_length(text + bytes);
            assert_true(weir__text_columns(text, bytes) <= columns);
            assert_false(weir__utf8_length(text) && weir__utf8_continues((unsigned char)text[bytes]));
            if (text[bytes])
                assert_true(weir__text_columns(text, bytes + (length ? length : 1)) > columns);
        }
        assert_int_equal(weir__text_cut(text, samples[i].columns), strlen(text));
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
