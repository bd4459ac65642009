#include "textflag.h"

#define SYS_write 1
#define SYS_rt_sigaction 13
#define SYS_rt_sigprocmask 14
#define SYS_rt_sigreturn 15
#define SYS_clone 56
#define SYS_execve 59
#define SYS_getppid 110
#define SYS_rt_sigtimedwait 128
#define SYS_prctl 157
#define SYS_exit_group 231
#define SYS_close_range 436

// func cloneWitness(stack, set, info, w, ppid uintptr) (pid uintptr)
TEXT ·cloneWitness(SB),NOSPLIT,$0-48
	MOVQ stack+0(FP), SI
	MOVQ set+8(FP), R12
	MOVQ info+16(FP), R13
	MOVQ w+24(FP), BX
	MOVQ ppid+32(FP), R9
	MOVQ $0x111, DI // CLONE_VM|SIGCHLD
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVQ $SYS_clone, AX
	SYSCALL
	TESTQ AX, AX
	JZ   child
	MOVQ AX, pid+40(FP)
	RET

child:
	MOVQ $1, DI // PR_SET_PDEATHSIG
	MOVQ $9, SI // SIGKILL
	MOVQ $SYS_prctl, AX
	SYSCALL
	MOVQ $SYS_getppid, AX // the parent may have died before the prctl
	SYSCALL
	CMPQ AX, R9
	JNE  out

	// Close everything but w.
	XORL DI, DI
	LEAQ -1(BX), SI
	XORL DX, DX
	MOVQ $SYS_close_range, AX
	SYSCALL
	LEAQ 1(BX), DI
	MOVL $0xffffffff, SI
	XORL DX, DX
	MOVQ $SYS_close_range, AX
	SYSCALL

loop:
	MOVQ  R12, DI
	MOVQ  R13, SI
	XORL  DX, DX
	MOVQ  $8, R10
	MOVQ  $SYS_rt_sigtimedwait, AX
	SYSCALL
	TESTQ AX, AX
	JLE   loop // EINTR, after a stop
	MOVQ  BX, DI
	MOVQ  R13, SI
	MOVQ  $20, DX // sizeof(Signal)
	MOVQ  $SYS_write, AX
	SYSCALL
	CMPQ  AX, $20
	JEQ   loop // else nobody reads any more

out:
	XORL DI, DI
	MOVQ $SYS_exit_group, AX
	SYSCALL
	INT  $3

// func vforkExec(stack, args uintptr) (pid uintptr)
TEXT ·vforkExec(SB),NOSPLIT,$0-24
	MOVQ stack+0(FP), SI
	MOVQ args+8(FP), R12
	MOVQ $0x4111, DI // CLONE_VM|CLONE_VFORK|SIGCHLD
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVQ $SYS_clone, AX
	SYSCALL
	TESTQ AX, AX
	JZ   child
	MOVQ AX, pid+16(FP)
	RET

child:
	MOVQ 0(R12), R13 // ignore

ignore:
	MOVQ  (R13), DI
	TESTQ DI, DI
	JZ    dfl
	ADDQ  $8, R13
	MOVQ  16(R12), SI // ignoreAct
	XORL  DX, DX
	MOVQ  $8, R10
	MOVQ  $SYS_rt_sigaction, AX
	SYSCALL
	JMP   ignore

dfl:
	MOVQ 8(R12), R13 // dfl

dflNext:
	MOVQ  (R13), DI
	TESTQ DI, DI
	JZ    run
	ADDQ  $8, R13
	MOVQ  24(R12), SI // dflAct
	XORL  DX, DX
	MOVQ  $8, R10
	MOVQ  $SYS_rt_sigaction, AX
	SYSCALL
	JMP   dflNext

run:
	MOVQ $2, DI // SIG_SETMASK
	MOVQ 32(R12), SI // mask
	XORL DX, DX
	MOVQ $8, R10
	MOVQ $SYS_rt_sigprocmask, AX
	SYSCALL
	MOVQ 40(R12), DI // path
	MOVQ 48(R12), SI // argv
	MOVQ 56(R12), DX // envv
	MOVQ $SYS_execve, AX
	SYSCALL
	MOVQ AX, 64(R12) // errno
	MOVQ $127, DI
	MOVQ $SYS_exit_group, AX
	SYSCALL
	INT  $3

// onSignal is a signal handler with the C calling convention: siginfo_t in SI. The kernel restores every register.
TEXT ·onSignal(SB),NOSPLIT|NOFRAME,$0
	MOVL ·catchFD(SB), DI
	MOVQ $20, DX // sizeof(Signal)
	MOVQ $SYS_write, AX
	SYSCALL
	RET

TEXT ·restore(SB),NOSPLIT|NOFRAME,$0
	MOVQ $SYS_rt_sigreturn, AX
	SYSCALL
	INT  $3

// func handlerPCs() (handler, restorer uintptr)
TEXT ·handlerPCs(SB),NOSPLIT,$0-16
	LEAQ ·onSignal(SB), AX
	MOVQ AX, handler+0(FP)
	LEAQ ·restore(SB), AX
	MOVQ AX, restorer+8(FP)
	RET
