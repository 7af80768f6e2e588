/* Limits a process that loads this first (LD_PRELOAD) to AVX2 and FMA.
 *
 * The system lets each CPUID instruction fault (arch_prctl, ARCH_SET_CPUID; Linux on Intel's processors whose flags name cpuid_fault), and the
 * handler answers in its place, without AVX-512, AMX and AVX-VNNI. This limits libraries that execute CPUID themselves as well as those that
 * read ONEDNN_MAX_CPU_ISA. XGETBV is unchanged: code that uses AVX-512 checks both.
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
static struct sigaction program_action; /* the program's own, for real faults */
static int installed;

static int allow_cpuid(int on) { return (int)syscall(SYS_arch_prctl, SET_CPUID, on); }

static unsigned bits(const int *numbers, int count) {
    unsigned found = 0;
    for (int i = 0; i < count; ++i) found |= 1u << numbers[i];
    return found;
}

/* Clears the feature bits beyond AVX2 in `cpuid`, the registers EAX to EDX of an answer. */
static void hide(unsigned leaf, unsigned part, unsigned cpuid[4]) {
    static const int foundation[] = {16, 17, 21, 26, 27, 28, 30, 31}; /* F, DQ, IFMA, PF, ER, CD, BW, VL */
    static const int vectors[] = {1, 6, 11, 12, 14};                 /* VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ */
    static const int tiles[] = {2, 3, 8, 22, 23, 24, 25};            /* 4VNNIW, 4FMAPS, VP2INTERSECT, AMX-BF16, FP16, AMX-TILE, AMX-INT8 */
    if (leaf != 7) return;
    if (part == 0) {
        cpuid[1] &= ~bits(foundation, sizeof foundation / sizeof *foundation);
        cpuid[2] &= ~bits(vectors, sizeof vectors / sizeof *vectors);
        cpuid[3] &= ~bits(tiles, sizeof tiles / sizeof *tiles);
    } else {
        memset(cpuid, 0, 4 * sizeof *cpuid); /* AVX-VNNI, AVX512-BF16, AMX-FP16, AVX10 and their kin */
    }
}

static void fault(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)registers[REG_RIP];
    if (info->si_code == SI_KERNEL && code[0] == 0x0f && code[1] == 0xa2) {
        unsigned leaf = (unsigned)registers[REG_RAX], part = (unsigned)registers[REG_RCX], cpuid[4];
        allow_cpuid(1);
        __cpuid_count(leaf, part, cpuid[0], cpuid[1], cpuid[2], cpuid[3]);
        allow_cpuid(0);
        hide(leaf, part, cpuid);
        registers[REG_RAX] = cpuid[0], registers[REG_RBX] = cpuid[1], registers[REG_RCX] = cpuid[2], registers[REG_RDX] = cpuid[3];
        registers[REG_RIP] += 2;
    } else if (program_action.sa_flags & SA_SIGINFO) {
        program_action.sa_sigaction(number, info, context);
    } else if (program_action.sa_handler != SIG_DFL && program_action.sa_handler != SIG_IGN) {
        program_action.sa_handler(number);
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
    if (old) *old = program_action;
    if (wanted) program_action = *wanted;
    return 0;
}

sighandler_t signal(int number, sighandler_t handler) {
    struct sigaction wanted, old;
    memset(&wanted, 0, sizeof wanted);
    wanted.sa_handler = handler;
    wanted.sa_flags = SA_RESTART;
    return sigaction(number, &wanted, &old) ? SIG_ERR : old.sa_handler;
}

__attribute__((constructor)) static void install(void) {
    struct sigaction mine;
    memset(&mine, 0, sizeof mine);
    mine.sa_sigaction = fault;
    mine.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &mine, &program_action); /* the first call finds the system's own function */
    installed = 1;
    if (allow_cpuid(0)) {
        perror("this system lets no program see less of its processor (arch_prctl, ARCH_SET_CPUID)");
        _exit(1);
    }
}
