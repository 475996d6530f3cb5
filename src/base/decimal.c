/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers in texts; see decimal.h. */
#include "base/decimal.h"

#include <string.h>

#define FRACTION_ONE 1000000000000000000ULL

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *scan_fraction(const char *at, struct decimal *number)
{
    uint64_t place = FRACTION_ONE / 10;

    if (!is_digit(*at))
        return NULL;
    for (; is_digit(*at); at++, place /= 10) {
        number->fraction += (uint64_t)(*at - '0') * place;
        number->is_cut |= place == 0 && *at != '0';
    }
    return at;
}

const char *decimal_scan(const char *text, struct decimal *out)
{
    struct decimal number = {0};
    const char *at = text;

    if (!is_digit(*at))
        return NULL;
    for (; is_digit(*at); at++) {
        if (__builtin_mul_overflow(number.whole, 10, &number.whole) ||
            __builtin_add_overflow(number.whole, (uint64_t)(*at - '0'), &number.whole))
            return NULL;
    }
    if (*at == '.') {
        number.has_point = true;
        at = scan_fraction(at + 1, &number);
    }
    if (at)
        *out = number;
    return at;
}

bool decimal_times(const struct decimal *number, uint64_t unit, uint64_t *out)
{
    unsigned __int128 parts = (unsigned __int128)number->fraction * unit;
    uint64_t whole = (uint64_t)(parts / FRACTION_ONE);
    uint64_t product = 0;

    if (parts % FRACTION_ONE || number->is_cut)
        whole++;
    if (__builtin_mul_overflow(number->whole, unit, &product) ||
        __builtin_add_overflow(product, whole, &product))
        return false;
    *out = product;
    return true;
}

size_t decimal_format_natural(uint64_t number, char text[DECIMAL_TEXT])
{
    char *at = text + DECIMAL_TEXT - 1;
    const char *end = at;

    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    size_t length = (size_t)(end - at);
    memmove(text, at, length + 1);
    return length;
}

size_t decimal_format(int64_t number, char text[DECIMAL_TEXT])
{
    char digits[DECIMAL_TEXT];
    uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
    size_t is_negative = number < 0, length = decimal_format_natural(size, digits);

    text[0] = '-';
    memcpy(text + is_negative, digits, length + 1);
    return is_negative + length;
}
