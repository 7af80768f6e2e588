/* A process that loads this first (LD_PRELOAD) finds a processor with AVX2 and FMA, and nothing beyond.
 *
 * The system lets each CPUID instruction fault (arch_prctl, ARCH_SET_CPUID; Linux on Intel's processors whose flags name cpuid_fault), and the
 * handler answers in its place, without AVX-512, AMX and AVX-VNNI. Libraries that ask the processor itself are held as well as those that read
 * ONEDNN_MAX_CPU_ISA. What XGETBV tells stays: who uses AVX-512 looks at both.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012 };

static int (*set_action)(int, const struct sigaction *, struct sigaction *);
static struct sigaction theirs; /* what the program wants done with real faults */
static int installed;

static int allow(int on) { return (int)syscall(SYS_arch_prctl, SET_CPUID, on); }

static unsigned bits(const int *numbers, int count) {
    unsigned found = 0;
    for (int i = 0; i < count; ++i) found |= 1u << numbers[i];
    return found;
}

/* `told` are the four registers of an answer, from EAX on. */
static void hide(unsigned leaf, unsigned part, unsigned told[4]) {
    static const int foundation[] = {16, 17, 21, 26, 27, 28, 30, 31}; /* F, DQ, IFMA, PF, ER, CD, BW, VL */
    static const int vectors[] = {1, 6, 11, 12, 14};                 /* VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ */
    static const int tiles[] = {2, 3, 8, 22, 23, 24, 25};            /* 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, FP16, AMX-TILE, AMX-INT8 */
    if (leaf != 7) return;
    if (part == 0) {
        told[1] &= ~bits(foundation, sizeof foundation / sizeof *foundation);
        told[2] &= ~bits(vectors, sizeof vectors / sizeof *vectors);
        told[3] &= ~bits(tiles, sizeof tiles / sizeof *tiles);
    } else {
        memset(told, 0, 4 * sizeof *told); /* AVX-VNNI, AVX512-BF16, AMX-FP16, AVX10 and their kin */
    }
}

static void fault(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)registers[REG_RIP];
    if (info->si_code == SI_KERNEL && code[0] == 0x0f && code[1] == 0xa2) {
        unsigned leaf = (unsigned)registers[REG_RAX], part = (unsigned)registers[REG_RCX], told[4];
        allow(1);
        __cpuid_count(leaf, part, told[0], told[1], told[2], told[3]);
        allow(0);
        hide(leaf, part, told);
        registers[REG_RAX] = told[0], registers[REG_RBX] = told[1], registers[REG_RCX] = told[2], registers[REG_RDX] = told[3];
        registers[REG_RIP] += 2;
    } else if (theirs.sa_flags & SA_SIGINFO) {
        theirs.sa_sigaction(number, info, context);
    } else if (theirs.sa_handler != SIG_DFL && theirs.sa_handler != SIG_IGN) {
        theirs.sa_handler(number);
    } else {
        struct sigaction plain;
        memset(&plain, 0, sizeof plain);
        set_action(SIGSEGV, &plain, 0);
        if (info->si_code <= 0) raise(number); /* somebody sent it; else the instruction faults again, and the process ends as it would have */
    }
}

int sigaction(int number, const struct sigaction *wanted, struct sigaction *old) {
    if (!set_action) set_action = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
    if (number != SIGSEGV || !installed) return set_action(number, wanted, old);
    if (old) *old = theirs;
    if (wanted) theirs = *wanted;
    return 0;
}

sighandler_t signal(int number, sighandler_t handler) {
    struct sigaction wanted, old;
    memset(&wanted, 0, sizeof wanted);
    wanted.sa_handler = handler;
    wanted.sa_flags = SA_RESTART;
    return sigaction(number, &wanted, &old) ? SIG_ERR : old.sa_handler;
}

__attribute__((constructor)) static void hold(void) {
    struct sigaction mine;
    memset(&mine, 0, sizeof mine);
    mine.sa_sigaction = fault;
    mine.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &mine, &theirs); /* the first call finds the system's own function */
    installed = 1;
    if (allow(0)) {
        perror("this system lets no program see less of its processor (arch_prctl, ARCH_SET_CPUID)");
        _exit(1);
    }
}
