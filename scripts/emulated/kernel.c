/* The least kernel that a static Linux program of one thread runs on: enough system calls for a Rust test binary, and no more.

   It exists so that tests run on an emulated processor that has what the machine at hand lacks. The program runs in ring 0, in
   identity-mapped memory, without interrupts; there are no files but /dev/random and /dev/urandom. Whatever goes wrong ends the run with a line that says so. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef long i64;

#define PROGRAM 0x30000000ul   /* the program's ELF file */
#define ARGUMENTS 0x2ff00000ul /* its arguments: lines up to an empty one; then its environment, likewise */
#define HEAP 0x08000000ul      /* brk's area: 128 to 256 MiB */
#define HEAP_END 0x10000000ul
#define ARENA 0x10000000ul     /* mmap's area: 256 to 752 MiB */
#define ARENA_END 0x2f000000ul
#define STACK 0x2f000000ul     /* the program's stack: 15 MiB, downwards from its end */
#define STACK_END 0x2ff00000ul
#define PAGE 4096ul
#define RANDOM 3 /* the file that /dev/urandom is */

enum { ENOENT = 2, EBADF = 9, EAGAIN = 11, ENOMEM = 12, EINVAL = 22, ENOTTY = 25, ENOSYS = 38, ETIMEDOUT = 110 };

void *memset(void *to, int byte, u64 n) { u8 *p = to; while (n--) *p++ = byte; return to; }
void *memcpy(void *to, const void *from, u64 n) { u8 *p = to; const u8 *q = from; while (n--) *p++ = *q++; return to; }

static inline void outb(u16 port, u8 value) { __asm__ volatile("outb %0, %1" ::"a"(value), "Nd"(port)); }
static inline u8 inb(u16 port) { u8 value; __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port)); return value; }
static inline void wrmsr(u32 msr, u64 value) { __asm__ volatile("wrmsr" ::"c"(msr), "a"((u32)value), "d"((u32)(value >> 32))); }
static inline u64 rdtsc(void) { u32 low, high; __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)); return ((u64)high << 32) | low; }

static inline void insw(u16 port, void *to, u64 words) { __asm__ volatile("rep insw" : "+D"(to), "+c"(words) : "d"(port) : "memory"); }

static void put(char c) { while (!(inb(0x3fd) & 0x20)) {} outb(0x3f8, c); }
static void print(const char *text) { while (*text) put(*text++); }
static void print_hex(u64 value) { print("0x"); for (int shift = 60; shift >= 0; shift -= 4) put("0123456789abcdef"[(value >> shift) & 15]); }
static void print_decimal(u64 value) { if (value >= 10) print_decimal(value / 10); put('0' + value % 10); }

static void __attribute__((noreturn)) end(u64 code) {
    print("\nEMULATED-EXIT "); print_decimal(code); print("\n"); while (!(inb(0x3fd) & 0x40)) {}
    for (const char *p = "Shutdown"; *p; p++) outb(0x8900, *p); /* Bochs ends itself */
    for (;;) __asm__ volatile("cli; hlt");
}

/* Exceptions: none is expected. */
struct frame { u64 vector, error, rip, cs, flags, rsp, ss; };
void __attribute__((noreturn)) exception(struct frame *f) {
    u64 address; __asm__ volatile("mov %%cr2, %0" : "=r"(address));
    print("\nexception "); print_decimal(f->vector); print(" at "); print_hex(f->rip); print(" error "); print_hex(f->error); print(" cr2 "); print_hex(address); print(" rsp "); print_hex(f->rsp);
    end(255);
}

/* Bochs 2.7 refuses VPGATHERQQ if its index is one of the registers 16 to 31, which is allowed. So it is done here. The stack is the program's:
   it must have been compiled without a red zone. */
struct registers { u64 rax, rcx, rdx, rbx, at, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15; struct { u64 rip, cs, flags, rsp, ss; } frame; };

static u8 wide[4096] __attribute__((aligned(64))); /* as XSAVE writes it: XMM at 160, upper halves of YMM at 576, opmasks at 1088, upper halves of ZMM at 1152, ZMM16 at 1664 */

static u64 *quadword(u64 vector, u64 lane) {
    if (vector >= 16) return (u64 *)(wide + 1664 + 64 * (vector - 16)) + lane;
    if (lane < 2) return (u64 *)(wide + 160 + 16 * vector) + lane;
    if (lane < 4) return (u64 *)(wide + 576 + 16 * vector) + lane - 2;
    return (u64 *)(wide + 1152 + 32 * vector) + lane - 4;
}

static int gather(struct registers *r) {
    const u8 *code = (u8 *)r->frame.rip;
    if (code[0] != 0x62 || (code[1] & 0x0f) != 0x02 || code[2] != 0xfd || (code[3] & 0xf0) != 0x40 || code[4] != 0x91 || (code[5] & 7) != 4) return 0;
    u64 extend = ~code[1]; /* R X B R' are stored inverted */
    u64 to = (code[5] >> 3 & 7) | (extend >> 7 & 1) << 3 | (extend >> 4 & 1) << 4;
    u64 index = (code[6] >> 3 & 7) | (extend >> 6 & 1) << 3 | (~code[3] >> 3 & 1) << 4;
    u64 base = (code[6] & 7) | (extend >> 5 & 1) << 3, scale = code[6] >> 6, mask = code[3] & 7, length = 7, address = 0;
    switch (code[5] >> 6) {
    case 0: if ((code[6] & 7) == 5) { address = *(int *)(code + 7); base = 16; length = 11; } break;
    case 1: address = *(signed char *)(code + 7) * 8; length = 8; break;
    case 2: address = *(int *)(code + 7); length = 11; break;
    default: return 0;
    }
    if (base == 4) address += r->frame.rsp; else if (base < 16) address += ((u64 *)r)[base];
    __asm__ volatile("xsave64 %0" : "=m"(wide) : "a"(0xffffffff), "d"(0xffffffff));
    u64 *wanted = (u64 *)(wide + 1088) + mask;
    for (u64 lane = 0; lane < 8; lane++)
        if (*wanted >> lane & 1) *quadword(to, lane) = *(u64 *)(address + (*quadword(index, lane) << scale));
    *wanted = 0;
    *(u64 *)(wide + 512) |= 0xe6;
    __asm__ volatile("xrstor64 %0" : : "m"(wide), "a"(0xffffffff), "d"(0xffffffff));
    r->frame.rip += length;
    return 1;
}

void undefined(struct registers *r) {
    if (gather(r)) return;
    struct frame f = { 6, 0, r->frame.rip, r->frame.cs, r->frame.flags, r->frame.rsp, r->frame.ss };
    exception(&f);
}

extern void enter_undefined(void);
__asm__(
    "enter_undefined:\n"
    "  push %r15\n  push %r14\n  push %r13\n  push %r12\n  push %r11\n  push %r10\n  push %r9\n  push %r8\n"
    "  push %rdi\n  push %rsi\n  push %rbp\n  push %rax\n  push %rbx\n  push %rdx\n  push %rcx\n  push %rax\n"
    "  mov %rsp, %rdi\n  mov %rsp, %rbx\n  and $-16, %rsp\n  cld\n  call undefined\n  mov %rbx, %rsp\n"
    "  pop %rax\n  pop %rcx\n  pop %rdx\n  pop %rbx\n  add $8, %rsp\n  pop %rbp\n  pop %rsi\n  pop %rdi\n"
    "  pop %r8\n  pop %r9\n  pop %r10\n  pop %r11\n  pop %r12\n  pop %r13\n  pop %r14\n  pop %r15\n"
    "  iretq\n");

/* mmap: first fit over a map of pages. */
static u8 used[(ARENA_END - ARENA) / PAGE];
static void copy(u64 to, u64 from, u64 bytes) { __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(bytes) : : "memory"); }
static void clear(u64 at, u64 bytes) { __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(0) : "memory"); }

static u64 pages_of(u64 bytes) { return (bytes + PAGE - 1) / PAGE; }

static i64 map(u64 bytes) {
    u64 wanted = pages_of(bytes), run = 0;
    if (wanted == 0) return -EINVAL;
    for (u64 i = 0; i < sizeof used; i++) {
        run = used[i] ? 0 : run + 1;
        if (run == wanted) {
            u64 first = i + 1 - wanted;
            memset(used + first, 1, wanted);
            u64 address = ARENA + first * PAGE;
            clear(address, wanted * PAGE);
            return address;
        }
    }
    return -ENOMEM;
}

static i64 unmap(u64 address, u64 bytes) {
    if (address < ARENA || address + bytes > ARENA_END || address % PAGE) return -EINVAL;
    memset(used + (address - ARENA) / PAGE, 0, pages_of(bytes));
    return 0;
}

static u64 heap = HEAP, random_state;

/* What the auxiliary vector tells the program of its own headers. */
static u64 entry, headers, header_count;

struct time { u64 seconds, nanoseconds; };
struct piece { const char *bytes; u64 length; };

static i64 write(u64 file, const char *bytes, u64 length) {
    if (file != 1 && file != 2) return -EBADF;
    for (u64 i = 0; i < length; i++) put(bytes[i]);
    return length;
}

/* Threads take turns: one runs until it waits, yields or ends. */
struct thread {
    u64 rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15; /* rcx: where it goes on; r11: its flags */
    u64 base;           /* FS */
    enum { FREE, READY, WAITING } state;
    u32 timed;          /* it waits no longer than some time */
    u64 waits_on;       /* the word, if it waits */
    u64 clear_at_end;   /* the word cleared, and its waiters woken, when it ends */
    u8 wide[4096] __attribute__((aligned(64))); /* x87 to ZMM, as XSAVE writes them */
};
static struct thread threads[64];
struct thread *current = threads;

static void switch_to(struct thread *next) {
    if (next == current) return;
    __asm__ volatile("xsave64 %0" : "=m"(current->wide) : "a"(0xffffffff), "d"(0xffffffff));
    current = next;
    __asm__ volatile("xrstor64 %0" : : "m"(current->wide), "a"(0xffffffff), "d"(0xffffffff));
    wrmsr(0xc0000100, current->base);
}

static void next_thread(void) {
    u64 at = current - threads;
    for (u64 i = 1; i <= 64; i++) {
        struct thread *t = threads + (at + i) % 64;
        if (t->state == READY) { switch_to(t); return; }
    }
    for (struct thread *t = threads; t < threads + 64; t++)
        if (t->state == WAITING && t->timed) { t->state = READY; t->rax = -ETIMEDOUT; switch_to(t); return; }
    print("\nall threads wait"); end(254);
}

static u64 wake(u64 word, u64 most) {
    u64 woken = 0;
    for (struct thread *t = threads; t < threads + 64 && woken < most; t++)
        if (t->state == WAITING && t->waits_on == word) { t->state = READY; t->rax = 0; woken++; }
    return woken;
}

static i64 new_thread(u64 flags, u64 stack, u64 parent_word, u64 child_word, u64 base) {
    struct thread *t = threads;
    while (t < threads + 64 && t->state != FREE) t++;
    if (t == threads + 64) return -EAGAIN;
    u64 number = t - threads + 1;
    __asm__ volatile("xsave64 %0" : "=m"(current->wide) : "a"(0xffffffff), "d"(0xffffffff));
    *t = *current;
    t->rsp = stack; t->rax = 0; t->base = base; t->state = READY;
    t->clear_at_end = flags & 0x200000 ? child_word : 0;
    if (flags & 0x100000) *(u32 *)parent_word = number;
    if (flags & 0x1000000) *(u32 *)child_word = number;
    return number;
}

static void end_thread(void) {
    if (current->clear_at_end) { *(u32 *)current->clear_at_end = 0; wake(current->clear_at_end, 1); }
    current->state = FREE;
    next_thread();
}

static i64 futex(u32 *word, u64 operation, u32 value, u64 time) {
    switch (operation & 0x7f) {
    case 0: case 9: /* FUTEX_WAIT, FUTEX_WAIT_BITSET */
        if (*word != value) return -EAGAIN;
        struct thread *caller = current;
        caller->state = WAITING; caller->timed = time != 0; caller->waits_on = (u64)word; caller->rax = 0;
        next_thread();
        return caller->rax;
    case 1: case 10: return wake((u64)word, value); /* FUTEX_WAKE, FUTEX_WAKE_BITSET */
    default: print("\nfutex operation "); print_decimal(operation); return -ENOSYS;
    }
}

static i64 fill_random(u8 *to, u64 length) {
    for (u64 i = 0; i < length; i++) {
        random_state = random_state * 6364136223846793005ul + 1442695040888963407ul;
        to[i] = random_state >> 56;
    }
    return length;
}

static int same(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

static int is_random(const char *path) { return same(path, "/dev/random") || same(path, "/dev/urandom"); }

static i64 call(u64 number, u64 a, u64 b, u64 c, u64 d, u64 e) {
    switch (number) {
    case 0: return a == RANDOM ? fill_random((u8 *)b, c) : 0; /* read: the standard input is empty */
    case 1: return write(a, (const char *)b, c);
    case 3: return 0;                                      /* close */
    case 257: return is_random((const char *)b) ? RANDOM : -ENOENT; /* openat */
    case 4: case 6: case 21: case 262: case 332: return -ENOENT; /* stat, lstat, access, newfstatat, statx */
    case 5: memset((void *)b, 0, 144); return 0;           /* fstat */
    case 7: return b;                                      /* poll: all are ready */
    case 8: return -EINVAL;                                /* lseek */
    case 9: return d & 0x20 ? map(b) : -ENOSYS;            /* mmap, anonymous only */
    case 10: return 0;                                     /* mprotect */
    case 11: return unmap(a, b);
    case 12: if (a >= HEAP && a <= HEAP_END) { if (a > heap) clear(heap, a - heap); heap = a; } return heap; /* brk */
    case 13: case 14: return 0;                            /* rt_sigaction, rt_sigprocmask */
    case 16: return -ENOTTY;                               /* ioctl */
    case 20: { i64 sum = 0; const struct piece *p = (void *)b; for (u64 i = 0; i < c; i++) sum += write(a, p[i].bytes, p[i].length); return sum; } /* writev */
    case 24: case 35: case 230: next_thread(); return 0;   /* sched_yield, nanosleep, clock_nanosleep */
    case 28: case 131: case 157: case 273: return 0;       /* madvise, sigaltstack, prctl, set_robust_list */
    case 25: return -ENOMEM;                               /* mremap: the program copies */
    case 39: return 1;                                     /* getpid */
    case 186: case 218: return current - threads + 1;      /* gettid, set_tid_address */
    case 56: return new_thread(a, b, c, d, e);             /* clone */
    case 435: return -ENOSYS;                              /* clone3: clone will do */
    case 60: end_thread(); return 0;                       /* exit */
    case 231: end(a);                                      /* exit_group */
    case 72: return 0;                                     /* fcntl */
    case 79: if (b < 2) return -EINVAL; memcpy((void *)a, "/", 2); return 2; /* getcwd */
    case 87: case 89: case 267: return -ENOENT;            /* unlink, readlink, readlinkat */
    case 96: case 228: {                                   /* gettimeofday, clock_gettime: cycles at a nominal 1 GHz */
        u64 now = rdtsc(); struct time *t = (void *)(number == 96 ? a : b);
        t->seconds = 1700000000 + now / 1000000000; t->nanoseconds = now % 1000000000; if (number == 96) t->nanoseconds /= 1000; return 0; }
    case 102: case 104: case 107: case 108: return 0;      /* getuid and its like */
    case 158: if (a != 0x1002) return -EINVAL; current->base = b; wrmsr(0xc0000100, b); return 0; /* arch_prctl: the base of FS */
    case 202: return futex((u32 *)a, b, c, d);
    case 204: if (b < 8) return -EINVAL; *(u64 *)c = 1; return 8; /* sched_getaffinity */
    case 234: case 200: case 62: print("\nsignal "); print_decimal(number == 234 ? c : b); end(253); /* tgkill, tkill, kill: abort */
    case 302: if (d) { ((u64 *)d)[0] = STACK_END - STACK; ((u64 *)d)[1] = STACK_END - STACK; } return 0; /* prlimit64 */
    case 318: return fill_random((u8 *)a, b);               /* getrandom */
    case 334: return -ENOSYS;                              /* rseq */
    default: print("\n[system call "); print_decimal(number); print(" is not there]\n"); return -ENOSYS;
    }
}

void system_call(void) {
    struct thread *caller = current;
    i64 result = call(caller->rax, caller->rdi, caller->rsi, caller->rdx, caller->r10, caller->r8);
    if (current == caller || caller->state == READY) caller->rax = result;
}

/* syscall: keeps the registers in the current thread's record, and goes on with those of whichever thread is current then. */
extern void enter_system_call(void);
__asm__(
    ".section .text.first, \"ax\"\n"
    "  jmp start_kernel\n"
    ".text\n"
    "enter_system_call:\n"
    "  mov %rsp, user_stack(%rip)\n"
    "  mov current(%rip), %rsp\n"
    "  mov %rax, 0(%rsp)\n  mov %rbx, 8(%rsp)\n  mov %rcx, 16(%rsp)\n  mov %rdx, 24(%rsp)\n  mov %rsi, 32(%rsp)\n  mov %rdi, 40(%rsp)\n  mov %rbp, 48(%rsp)\n"
    "  mov %r8, 64(%rsp)\n  mov %r9, 72(%rsp)\n  mov %r10, 80(%rsp)\n  mov %r11, 88(%rsp)\n  mov %r12, 96(%rsp)\n  mov %r13, 104(%rsp)\n  mov %r14, 112(%rsp)\n  mov %r15, 120(%rsp)\n"
    "  mov user_stack(%rip), %rax\n  mov %rax, 56(%rsp)\n"
    "  mov $0x90000, %rsp\n"
    "  call system_call\n"
    "  mov current(%rip), %rcx\n"
    "  mov 0(%rcx), %rax\n  mov 8(%rcx), %rbx\n  mov 24(%rcx), %rdx\n  mov 32(%rcx), %rsi\n  mov 40(%rcx), %rdi\n  mov 48(%rcx), %rbp\n"
    "  mov 64(%rcx), %r8\n  mov 72(%rcx), %r9\n  mov 80(%rcx), %r10\n  mov 88(%rcx), %r11\n  mov 96(%rcx), %r12\n  mov 104(%rcx), %r13\n  mov 112(%rcx), %r14\n  mov 120(%rcx), %r15\n"
    "  push %r11\n  popfq\n"
    "  mov 56(%rcx), %rsp\n"
    "  mov 16(%rcx), %rcx\n"
    "  jmp *%rcx\n");
u64 user_stack;

/* One entry for each exception: pushes an error code if the processor does not, then its number. */
extern u64 exception_entries[32];
__asm__(
    ".altmacro\n"
    ".macro ENTRY n\n"
    "entry_\\n:\n"
    "  .if !(\\n == 8 || (\\n >= 10 && \\n <= 14) || \\n == 17 || \\n == 21)\n  pushq $0\n  .endif\n"
    "  pushq $\\n\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call exception\n"
    ".endm\n"
    ".set i, 0\n.rept 32\n  ENTRY %i\n  .set i, i + 1\n.endr\n"
    ".macro ADDRESS n\n  .quad entry_\\n\n.endm\n"
    ".data\n.globl exception_entries\nexception_entries:\n"
    ".set i, 0\n.rept 32\n  ADDRESS %i\n  .set i, i + 1\n.endr\n.text\n");

static struct gate { u16 low, selector; u8 ist, type; u16 middle; u32 high, zero; } __attribute__((packed)) gates[32];
static struct { u16 limit; u64 base; } __attribute__((packed)) gates_at;

struct elf { u8 ident[16]; u16 type, machine; u32 version; u64 entry, headers, sections; u32 flags; u16 size, header_size, header_count; };
struct segment { u32 type, flags; u64 offset, address, physical, in_file, in_memory, align; };

/* The disk: the boot sector, then the program's file. Read by programmed input (ATA, 28-bit addresses). */
static void read_sectors(u32 first, u32 count, u8 command, void *to) {
    outb(0x1f6, 0xe0 | first >> 24); outb(0x1f2, count); outb(0x1f3, first); outb(0x1f4, first >> 8); outb(0x1f5, first >> 16); outb(0x1f7, command);
    for (; count; count--, to = (u8 *)to + 512) {
        u8 status;
        do status = inb(0x1f7); while ((status & 0x80) || !(status & 0x09));
        if (status & 1) { print("the disk cannot be read"); end(252); }
        insw(0x1f0, to, 256);
    }
}

static void read_program(void) {
    static u16 identity[256];
    read_sectors(0, 1, 0xec, identity);
    u32 sectors = identity[60] | (u32)identity[61] << 16;
    for (u32 at = 1; at < sectors; at += 128)
        read_sectors(at, sectors - at < 128 ? sectors - at : 128, 0x20, (void *)(PROGRAM + (at - 1) * 512ul));
}

static void load(void) {
    const struct elf *elf = (void *)PROGRAM;
    if (*(u32 *)elf->ident != 0x464c457f || elf->type != 2) { print("not a static program at a fixed address"); end(252); }
    const struct segment *s = (void *)(PROGRAM + elf->headers);
    for (u64 i = 0; i < elf->header_count; i++) {
        if (s[i].type != 1) continue;
        if (s[i].address < 0x200000 || s[i].address + s[i].in_memory > HEAP) { print("the program does not fit"); end(252); }
        copy(s[i].address, PROGRAM + s[i].offset, s[i].in_file);
        clear(s[i].address + s[i].in_file, s[i].in_memory - s[i].in_file);
        if (s[i].offset == 0) headers = s[i].address + elf->headers;
    }
    entry = elf->entry; header_count = elf->header_count;
}

/* Turns the lines from `p` to an empty one into strings whose addresses go to `to`; returns what follows. */
static char *lines(char *p, u64 **to) {
    while (*p != '\n' && *p) { *(*to)++ = (u64)p; while (*p != '\n') p++; *p++ = 0; }
    *(*to)++ = 0;
    return p + 1;
}

void __attribute__((noreturn)) start_kernel(void) {
    outb(0x3fb, 0x83); outb(0x3f8, 1); outb(0x3f9, 0); outb(0x3fb, 0x03); /* the serial line: 115,200 baud, 8 bits */
    for (u64 i = 0; i < 32; i++) {
        u64 at = i == 6 ? (u64)enter_undefined : exception_entries[i];
        gates[i] = (struct gate){ at, 0x18, 0, 0x8e, at >> 16, at >> 32, 0 };
    }
    gates_at.limit = sizeof gates - 1; gates_at.base = (u64)gates;
    __asm__ volatile("lidt %0" ::"m"(gates_at));
    wrmsr(0xc0000081, 0x0018ul << 32 | 0x0018ul << 48); /* STAR: the kernel's selectors */
    wrmsr(0xc0000082, (u64)enter_system_call);          /* LSTAR */
    wrmsr(0xc0000084, 0x600);                           /* FMASK: neither interrupts nor backwards strings */
    random_state = 1;
    current->state = READY;
    read_program();
    load();

    static u64 table[512];
    u64 *to = table + 1;
    char *rest = lines((char *)ARGUMENTS, &to);
    table[0] = to - table - 2;
    lines(rest, &to);
    static const u8 seed[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
    u64 aux[] = { 3, headers, 4, 56, 5, header_count, 6, PAGE, 9, entry, 11, 0, 12, 0, 13, 0, 14, 0, 17, 100, 23, 0, 25, (u64)seed, 31, table[1], 16, 0, 0, 0 };
    memcpy(to, aux, sizeof aux);
    u64 size = (u64)(to - table) * 8 + sizeof aux;
    u64 stack = (STACK_END - size) & ~15ul;
    memcpy((void *)stack, table, size);
    __asm__ volatile("mov %0, %%rsp\n xor %%ebp, %%ebp\n xor %%edx, %%edx\n jmp *%1" ::"a"(stack), "c"(entry) : "memory");
    __builtin_unreachable();
}
