//! The instructions of the three operations, for whoever has operands' addresses in registers: x in `rsi`, y in `rdi`, m in `rcx`.

/// x + y mod m to `out`. Spoils `rax`, `rcx`, `rdx`, `rsi`, `rdi` and `r8` to `r11`: no register that the caller would have to save for its own caller, which took longer than the sum.
/// What is subtracted is m, or the six zeros at `zero`: one conditional move of an address in the place of six of limbs.
macro_rules! sum {
    () => {
        concat!(
            "mov r8, [rsi + 0]\n",
            "add r8, [rdi + 0]\n",
            "mov r9, [rsi + 8]\n",
            "adc r9, [rdi + 8]\n",
            "mov r10, [rsi + 16]\n",
            "adc r10, [rdi + 16]\n",
            "mov r11, [rsi + 24]\n",
            "adc r11, [rdi + 24]\n",
            "mov rax, [rsi + 32]\n",
            "adc rax, [rdi + 32]\n",
            "mov rdx, [rsi + 40]\n",
            "adc rdx, [rdi + 40]\n",
            "lea rdi, [rip + {zero}]\n",
            // With a 385th bit it is not below m.
            "jc 3f\n",
            "cmp rdx, [rcx + 40]\n",
            "jne 2f\n",
            // The highest limbs are equal, as they always are where both are zero.
            "mov rsi, r8\n",
            "sub rsi, [rcx + 0]\n",
            "mov rsi, r9\n",
            "sbb rsi, [rcx + 8]\n",
            "mov rsi, r10\n",
            "sbb rsi, [rcx + 16]\n",
            "mov rsi, r11\n",
            "sbb rsi, [rcx + 24]\n",
            "mov rsi, rax\n",
            "sbb rsi, [rcx + 32]\n",
            "mov rsi, rdx\n",
            "sbb rsi, [rcx + 40]\n",
            "2:\n",
            "cmovc rcx, rdi\n",
            "3:\n",
            "sub r8, [rcx + 0]\n",
            "sbb r9, [rcx + 8]\n",
            "sbb r10, [rcx + 16]\n",
            "sbb r11, [rcx + 24]\n",
            "sbb rax, [rcx + 32]\n",
            "sbb rdx, [rcx + 40]\n",
            "mov [{out} + 0], r8\n",
            "mov [{out} + 8], r9\n",
            "mov [{out} + 16], r10\n",
            "mov [{out} + 24], r11\n",
            "mov [{out} + 32], rax\n",
            "mov [{out} + 40], rdx\n",
        )
    };
}

/// x - y mod m to `out`. Spoils what [`sum`] does but for `rsi`. What is added is m, or the six zeros at `zero`.
macro_rules! difference {
    () => {
        concat!(
            "mov r8, [rsi + 0]\n",
            "sub r8, [rdi + 0]\n",
            "mov r9, [rsi + 8]\n",
            "sbb r9, [rdi + 8]\n",
            "mov r10, [rsi + 16]\n",
            "sbb r10, [rdi + 16]\n",
            "mov r11, [rsi + 24]\n",
            "sbb r11, [rdi + 24]\n",
            "mov rax, [rsi + 32]\n",
            "sbb rax, [rdi + 32]\n",
            "mov rdx, [rsi + 40]\n",
            "sbb rdx, [rdi + 40]\n",
            "lea rdi, [rip + {zero}]\n",
            "cmovnc rcx, rdi\n",
            "add r8, [rcx + 0]\n",
            "adc r9, [rcx + 8]\n",
            "adc r10, [rcx + 16]\n",
            "adc r11, [rcx + 24]\n",
            "adc rax, [rcx + 32]\n",
            "adc rdx, [rcx + 40]\n",
            "mov [{out} + 0], r8\n",
            "mov [{out} + 8], r9\n",
            "mov [{out} + 16], r10\n",
            "mov [{out} + 24], r11\n",
            "mov [{out} + 32], rax\n",
            "mov [{out} + 40], rdx\n",
        )
    };
}

/// t += rdx * the six limbs at `$source`: low halves along CF, high halves along OF, the last carry into the seventh limb.
macro_rules! add_product {
    ($source:literal, $t0:literal, $t1:literal, $t2:literal, $t3:literal, $t4:literal, $t5:literal, $t6:literal) => {
        concat!(
            add_product!($source, "0", $t0, $t1),
            add_product!($source, "8", $t1, $t2),
            add_product!($source, "16", $t2, $t3),
            add_product!($source, "24", $t3, $t4),
            add_product!($source, "32", $t4, $t5),
            add_product!($source, "40", $t5, $t6),
            "mov eax, 0\n",
            "adcx ",
            $t6,
            ", rax\n",
        )
    };
    ($source:literal, $offset:literal, $low:literal, $high:literal) => {
        concat!(
            "mulx r15, rax, [",
            $source,
            " + ",
            $offset,
            "]\n",
            "adcx ",
            $low,
            ", rax\n",
            "adox ",
            $high,
            ", r15\n",
        )
    };
}

/// Adds the multiple of m that makes the lowest limb zero (for a true inverse); that limb is not used any more.
macro_rules! reduce {
    ($t0:literal, $($t:literal),*) => {
        concat!(
            "mov rdx, ", $t0, "\n",
            "imul rdx, [rcx + 48]\n",
            "xor eax, eax\n",
            add_product!("rcx", $t0, $($t),*),
        )
    };
}

/// One limb of y: t += x * y[i], then a step of reduction. The seventh limb begins empty.
macro_rules! row {
    ($offset:literal, $t0:literal, $t1:literal, $t2:literal, $t3:literal, $t4:literal, $t5:literal, $t6:literal) => {
        concat!(
            "mov rdx, [rdi + ",
            $offset,
            "]\n",
            "xor ",
            $t6,
            ", ",
            $t6,
            "\n",
            add_product!("rsi", $t0, $t1, $t2, $t3, $t4, $t5, $t6),
            reduce!($t0, $t1, $t2, $t3, $t4, $t5, $t6),
        )
    };
}

/// x y / 2^384 mod m, for x and m below 2^383, in `r14` and `r8` to `r12`. Spoils `rax`, `rdx`, `rsi`, `rdi`, `r13` and `r15`.
macro_rules! product {
    () => {
        concat!(
            // The first row has nothing to add to.
            "mov rdx, [rdi]\n",
            "mulx r9, r8, [rsi]\n",
            "mulx r10, rax, [rsi + 8]\n",
            "add r9, rax\n",
            "mulx r11, rax, [rsi + 16]\n",
            "adc r10, rax\n",
            "mulx r12, rax, [rsi + 24]\n",
            "adc r11, rax\n",
            "mulx r13, rax, [rsi + 32]\n",
            "adc r12, rax\n",
            "mulx r14, rax, [rsi + 40]\n",
            "adc r13, rax\n",
            "adc r14, 0\n",
            reduce!("r8", "r9", "r10", "r11", "r12", "r13", "r14"),
            row!("8", "r9", "r10", "r11", "r12", "r13", "r14", "r8"),
            row!("16", "r10", "r11", "r12", "r13", "r14", "r8", "r9"),
            row!("24", "r11", "r12", "r13", "r14", "r8", "r9", "r10"),
            row!("32", "r12", "r13", "r14", "r8", "r9", "r10", "r11"),
            row!("40", "r13", "r14", "r8", "r9", "r10", "r11", "r12"),
            // t - m, kept unless it is negative.
            "mov rax, r14\n",
            "sub rax, [rcx + 0]\n",
            "mov r15, r8\n",
            "sbb r15, [rcx + 8]\n",
            "mov rdx, r9\n",
            "sbb rdx, [rcx + 16]\n",
            "mov r13, r10\n",
            "sbb r13, [rcx + 24]\n",
            "mov rsi, r11\n",
            "sbb rsi, [rcx + 32]\n",
            "mov rdi, r12\n",
            "sbb rdi, [rcx + 40]\n",
            "cmovnc r14, rax\n",
            "cmovnc r8, r15\n",
            "cmovnc r9, rdx\n",
            "cmovnc r10, r13\n",
            "cmovnc r11, rsi\n",
            "cmovnc r12, rdi\n",
        )
    };
}
