# The boot sector: from the BIOS to 64-bit mode with AVX-512 switched on, then to the kernel at 1 MiB.
.code16
.globl _start
_start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movw $0x7c00, %sp
    inb $0x92, %al          # A20
    orb $2, %al
    outb %al, $0x92
    lgdtl descriptors
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x08, $protected
.code32
protected:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    # Page tables: the first GiB, as it is, in pages of 2 MiB.
    movl $0x10000, %edi
    xorl %eax, %eax
    movl $0xc00, %ecx
    rep stosl
    movl $0x11003, 0x10000
    movl $0x12003, 0x11000
    movl $0x12000, %edi
    movl $0x83, %eax
    movl $512, %ecx
1:  movl %eax, (%edi)
    addl $0x200000, %eax
    addl $8, %edi
    loop 1b
    movl $0x10000, %eax
    movl %eax, %cr3
    movl $0x40620, %eax     # OSXSAVE, OSXMMEXCPT, OSFXSR, PAE
    movl %eax, %cr4
    movl $0xc0000080, %ecx  # EFER: long mode, syscall
    rdmsr
    orl $0x101, %eax
    wrmsr
    movl %cr0, %eax
    andl $~0x0c, %eax       # neither EM nor TS: the registers are there
    orl $0x80000022, %eax   # PG, NE, MP
    movl %eax, %cr0
    xorl %ecx, %ecx
    xorl %edx, %edx
    movl $0xe7, %eax        # XCR0: x87, SSE, AVX, opmask, both upper parts of ZMM
    xsetbv
    ljmpl $0x18, $long
.code64
long:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movq $0x90000, %rsp
    movq $0x100000, %rax
    jmp *%rax
.align 8
table:
    .quad 0
    .quad 0x00cf9a000000ffff  # 0x08: 32-bit code
    .quad 0x00cf92000000ffff  # 0x10: data
    .quad 0x00af9a000000ffff  # 0x18: 64-bit code
    .quad 0x00cf92000000ffff  # 0x20: data, which SYSCALL takes for the stack
descriptors:
    .word . - table - 1
    .long table
.org 510
.word 0xaa55
