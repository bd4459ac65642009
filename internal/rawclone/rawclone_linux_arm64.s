#include "textflag.h"

#define SYS_write 64
#define SYS_exit_group 94
#define SYS_rt_sigaction 134
#define SYS_rt_sigprocmask 135
#define SYS_rt_sigtimedwait 137
#define SYS_prctl 167
#define SYS_getppid 173
#define SYS_clone 220
#define SYS_execve 221
#define SYS_close_range 436

// func cloneWitness(stack, set, info, w, ppid uintptr) (pid uintptr)
TEXT ·cloneWitness(SB),NOSPLIT,$0-48
	MOVD stack+0(FP), R1
	MOVD set+8(FP), R19
	MOVD info+16(FP), R20
	MOVD w+24(FP), R21
	MOVD ppid+32(FP), R22
	MOVD $0x111, R0 // CLONE_VM|SIGCHLD
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $SYS_clone, R8
	SVC
	CBZ  R0, child
	MOVD R0, pid+40(FP)
	RET

child:
	MOVD $1, R0 // PR_SET_PDEATHSIG
	MOVD $9, R1 // SIGKILL
	MOVD $SYS_prctl, R8
	SVC
	MOVD $SYS_getppid, R8 // the parent may have died before the prctl
	SVC
	CMP  R22, R0
	BNE  out

	// Close everything but w.
	MOVD ZR, R0
	SUB  $1, R21, R1
	MOVD ZR, R2
	MOVD $SYS_close_range, R8
	SVC
	ADD  $1, R21, R0
	MOVD $0xffffffff, R1
	MOVD ZR, R2
	MOVD $SYS_close_range, R8
	SVC

loop:
	MOVD R19, R0
	MOVD R20, R1
	MOVD ZR, R2
	MOVD $8, R3
	MOVD $SYS_rt_sigtimedwait, R8
	SVC
	CMP  $0, R0
	BLE  loop // EINTR, after a stop
	MOVD R21, R0
	MOVD R20, R1
	MOVD $20, R2 // sizeof(Signal)
	MOVD $SYS_write, R8
	SVC
	CMP  $20, R0
	BEQ  loop // else nobody reads any more

out:
	MOVD ZR, R0
	MOVD $SYS_exit_group, R8
	SVC
	BRK

// func vforkExec(stack, args uintptr) (pid uintptr)
TEXT ·vforkExec(SB),NOSPLIT,$0-24
	MOVD stack+0(FP), R1
	MOVD args+8(FP), R19
	MOVD $0x4111, R0 // CLONE_VM|CLONE_VFORK|SIGCHLD
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $SYS_clone, R8
	SVC
	CBZ  R0, child
	MOVD R0, pid+16(FP)
	RET

child:
	MOVD 0(R19), R20 // ignore

ignore:
	MOVD (R20), R0
	CBZ  R0, dfl
	ADD  $8, R20
	MOVD 16(R19), R1 // ignoreAct
	MOVD ZR, R2
	MOVD $8, R3
	MOVD $SYS_rt_sigaction, R8
	SVC
	B    ignore

dfl:
	MOVD 8(R19), R20 // dfl

dflNext:
	MOVD (R20), R0
	CBZ  R0, run
	ADD  $8, R20
	MOVD 24(R19), R1 // dflAct
	MOVD ZR, R2
	MOVD $8, R3
	MOVD $SYS_rt_sigaction, R8
	SVC
	B    dflNext

run:
	MOVD $2, R0 // SIG_SETMASK
	MOVD 32(R19), R1 // mask
	MOVD ZR, R2
	MOVD $8, R3
	MOVD $SYS_rt_sigprocmask, R8
	SVC
	MOVD 40(R19), R0 // path
	MOVD 48(R19), R1 // argv
	MOVD 56(R19), R2 // envv
	MOVD $SYS_execve, R8
	SVC
	MOVD R0, 64(R19) // errno
	MOVD $127, R0
	MOVD $SYS_exit_group, R8
	SVC
	BRK

// onSignal is a signal handler with the C calling convention: siginfo_t in R1, return address in R30. The kernel
// restores every register.
TEXT ·onSignal(SB),NOSPLIT|NOFRAME,$0
	MOVW ·catchFD(SB), R0
	MOVD $20, R2 // sizeof(Signal)
	MOVD $SYS_write, R8
	SVC
	RET

// func handlerPCs() (handler, restorer uintptr): without a restorer the kernel takes the one in the vDSO.
TEXT ·handlerPCs(SB),NOSPLIT,$0-16
	MOVD $·onSignal(SB), R0
	MOVD R0, handler+0(FP)
	MOVD ZR, restorer+8(FP)
	RET
