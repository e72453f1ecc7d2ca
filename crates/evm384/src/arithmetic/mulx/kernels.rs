//! The instructions of the three operations, for whoever has operands' addresses in registers: x in `rsi`, y in `rdi`, m in `rcx`.

/// x + y mod m in `r8` to `r13`. Spoils `rax`, `rdx`, `rsi`, `rdi`, `r14` and `r15`; one register more, `$spare`, gets the sum's last limb by `$save`, and has it after `$restore`.
macro_rules! sum {
    ($save:literal, $restore:literal, $spare:literal) => {
        concat!(
            "mov r8, [rsi + 0]\n",
            "add r8, [rdi + 0]\n",
            "mov r9, [rsi + 8]\n",
            "adc r9, [rdi + 8]\n",
            "mov r10, [rsi + 16]\n",
            "adc r10, [rdi + 16]\n",
            "mov r11, [rsi + 24]\n",
            "adc r11, [rdi + 24]\n",
            "mov r12, [rsi + 32]\n",
            "adc r12, [rdi + 32]\n",
            "mov r13, [rsi + 40]\n",
            "adc r13, [rdi + 40]\n",
            // All ones if the sum has a 385th bit: then the borrow below is no borrow.
            "sbb r14, r14\n",
            "mov rsi, r8\n",
            "sub r8, [rcx + 0]\n",
            "mov rdi, r9\n",
            "sbb r9, [rcx + 8]\n",
            "mov rax, r10\n",
            "sbb r10, [rcx + 16]\n",
            "mov rdx, r11\n",
            "sbb r11, [rcx + 24]\n",
            "mov r15, r12\n",
            "sbb r12, [rcx + 32]\n",
            $save,
            "\n",
            "sbb r13, [rcx + 40]\n",
            "sbb r14, 0\n",
            $restore,
            "\n",
            "cmovc r8, rsi\n",
            "cmovc r9, rdi\n",
            "cmovc r10, rax\n",
            "cmovc r11, rdx\n",
            "cmovc r12, r15\n",
            "cmovc r13, ",
            $spare,
            "\n",
        )
    };
}

/// x - y mod m in `r8` to `r13`. Spoils `rax`, `rdx`, `rsi`, `rdi`, `r14` and `r15`.
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
            "mov r12, [rsi + 32]\n",
            "sbb r12, [rdi + 32]\n",
            "mov r13, [rsi + 40]\n",
            "sbb r13, [rdi + 40]\n",
            // m if it is negative, else 0.
            "sbb r14, r14\n",
            "mov rsi, [rcx + 0]\n",
            "and rsi, r14\n",
            "mov rdi, [rcx + 8]\n",
            "and rdi, r14\n",
            "mov rax, [rcx + 16]\n",
            "and rax, r14\n",
            "mov rdx, [rcx + 24]\n",
            "and rdx, r14\n",
            "mov r15, [rcx + 32]\n",
            "and r15, r14\n",
            "and r14, [rcx + 40]\n",
            "add r8, rsi\n",
            "adc r9, rdi\n",
            "adc r10, rax\n",
            "adc r11, rdx\n",
            "adc r12, r15\n",
            "adc r13, r14\n",
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
