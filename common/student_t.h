/* Student's t, two-sided 95 %. Internal. */
#ifndef COMMON_STUDENT_T_H
#define COMMON_STUDENT_T_H

/* For any degrees of freedom; fewer than 1 are taken for 1 (Fisher and Cornish's expansion; a table below 4). */
static inline double weir__student_t(double freedom)
{
    static const double few[] = { 12.706, 4.303, 3.182, 2.776 };
    if (freedom < 4) {
        int whole = freedom < 1 ? 1 : (int)freedom;
        double part = freedom < 1 ? 0 : freedom - whole;
        return few[whole - 1] * (1 - part) + few[whole] * part;
    }
    const double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
}

#endif
