#include "textflag.h"

// The bytes that are compared with, each spread over a register.
DATA bytes<>+0(SB)/8, $0x640FF07060202D7A
GLOBL bytes<>(SB), RODATA|NOPTR, $8

#define Z      bytes<>+0(SB)
#define DASH   bytes<>+1(SB)
#define FOLD   bytes<>+2(SB) // makes a letter lower case
#define THIRD  bytes<>+3(SB) // E0, which begins three bytes, less this is 80
#define FOURTH bytes<>+4(SB) // F0, which begins four, less this is 80
#define NIBBLE bytes<>+6(SB)
#define D      bytes<>+7(SB)

// first8 and last8 of defang.go, and the bits that are folded before they are compared.
DATA words<>+0(SB)/8, $0x2020002020202020
DATA words<>+8(SB)/8, $0x6E752D757A6D616E
DATA words<>+16(SB)/8, $0x2020202020202020
DATA words<>+24(SB)/8, $0x646574737572746E
DATA words<>+32(SB)/8, $0x8080808080808080
GLOBL words<>(SB), RODATA|NOPTR, $40

// func scanString(s string, from, to int) int
TEXT ·scanString(SB), NOSPLIT, $0-40
	MOVQ s_base+0(FP), SI
	MOVQ from+16(FP), DX
	MOVQ to+24(FP), BX
	LEAQ ret+32(FP), R8
	JMP  scan<>(SB)

// func scanBytes(s []byte, from, to int) int
TEXT ·scanBytes(SB), NOSPLIT, $0-48
	MOVQ s_base+0(FP), SI
	MOVQ from+24(FP), DX
	MOVQ to+32(FP), BX
	LEAQ ret+40(FP), R8
	JMP  scan<>(SB)

// ILL leaves bits in v, which is at(DI), where a byte of it cannot follow the three before. The rules on two bytes in a row are
// those of pairs in scan_amd64.go, looked up by the halves of the first and the upper half of the second. The last of them, a
// continuation after a continuation, is no error but a must in the third and fourth place of a character. Y5, Y6, Y7 are lost.
#define ILL(at, v) \
	VMOVDQU  at-1(DI), Y5 \
	VPSRLW   $4, Y5, Y6   \
	VPSRLW   $4, v, Y7    \
	VPAND    Y13, Y5, Y5  \
	VPAND    Y13, Y6, Y6  \
	VPAND    Y13, Y7, Y7  \
	VPSHUFB  Y6, Y8, Y6   \
	VPSHUFB  Y5, Y9, Y5   \
	VPSHUFB  Y7, Y10, Y7  \
	VPAND    Y5, Y6, Y6   \
	VPAND    Y7, Y6, Y6   \
	VMOVDQU  at-2(DI), v  \
	VMOVDQU  at-3(DI), Y5 \
	VPSUBUSB Y14, v, v    \
	VPSUBUSB Y15, Y5, Y5  \
	VPOR     Y5, v, v     \
	VPAND    Y3, v, v     \
	VPXOR    Y6, v, v

// scan is both: SI is the text, DX from, BX to, R8 where the result goes.
TEXT scan<>(SB), NOSPLIT, $0-0
	LEAQ           ·ruleTables(SB), R9
	VBROADCASTI128 (R9), Y8
	VBROADCASTI128 16(R9), Y9
	VBROADCASTI128 32(R9), Y10
	VPBROADCASTQ   words<>+32(SB), Y3
	VPBROADCASTB   DASH, Y4
	VPBROADCASTB   Z, Y11
	VPBROADCASTB   FOLD, Y12
	VPBROADCASTB   NIBBLE, Y13
	VPBROADCASTB   THIRD, Y14
	VPBROADCASTB   FOURTH, Y15
	MOVQ           words<>+0(SB), R10
	MOVQ           words<>+8(SB), R11
	MOVQ           words<>+16(SB), R12
	SUBQ           $64, BX
	CMPQ           DX, BX
	JGT            done

block:
	LEAQ      (SI)(DX*1), DI
	VMOVDQU   (DI), Y0
	VMOVDQU   32(DI), Y1
	VPOR      Y0, Y1, Y2
	VPOR      -3(DI), Y2, Y2
	VPMOVMSKB Y2, AX
	TESTL     AX, AX
	JNZ       wide

	// All is ASCII, also the three bytes before, so nothing is ill-formed. A token has its z and its dash at their places.
	VPOR      3(DI), Y12, Y0
	VPOR      35(DI), Y12, Y1
	VPCMPEQB  Y0, Y11, Y0
	VPCMPEQB  Y1, Y11, Y1
	VPCMPEQB  5(DI), Y4, Y2
	VPCMPEQB  37(DI), Y4, Y5
	VPAND     Y0, Y2, Y0
	VPAND     Y1, Y5, Y1
	VPOR      Y0, Y1, Y2
	VPMOVMSKB Y2, AX
	TESTL     AX, AX
	JNZ       near

next:
	ADDQ $64, DX
	CMPQ DX, BX
	JLE  block
	LEAQ 64(BX), AX
	CMPQ DX, AX
	JGE  done
	MOVQ BX, DX     // the last block overlaps the one before
	JMP  block

wide:
	ILL(0, Y0)
	ILL(32, Y1)
	VPOR     Y0, Y1, Y2
	VPCMPEQB 5(DI), Y4, Y0
	VPCMPEQB 37(DI), Y4, Y1
	VPOR     Y0, Y1, Y5
	VPOR     Y2, Y5, Y5
	VPTEST   Y5, Y5
	JZ       next
	VPTEST   Y2, Y2
	JZ       near

done:
	VZEROUPPER
	MOVQ DX, (R8)
	RET

near:
	// Y0 and Y1 say where the dash, and in ASCII the z, is that of a token. Near-tokens mostly lack the end, so the d is looked at
	// next, and then the words.
	VPBROADCASTB D, Y2
	VPOR         14(DI), Y12, Y5
	VPOR         46(DI), Y12, Y6
	VPCMPEQB     Y5, Y2, Y5
	VPCMPEQB     Y6, Y2, Y6
	VPAND        Y5, Y0, Y0
	VPAND        Y6, Y1, Y1
	VPMOVMSKB    Y0, AX
	VPMOVMSKB    Y1, CX
	SHLQ         $32, CX
	ORQ          CX, AX
	JZ           next

compare:
	BSFQ AX, CX
	MOVQ (DI)(CX*1), R9
	ORQ  R10, R9
	CMPQ R9, R11
	JNE  differs
	MOVQ 7(DI)(CX*1), R9
	ORQ  R12, R9
	CMPQ R9, words<>+24(SB)
	JEQ  token

differs:
	LEAQ -1(AX), CX
	ANDQ CX, AX
	JNZ  compare
	JMP  next

token:
	ADDQ CX, DX
	JMP  done

// func seekString(s string, from, to int, t *classes) int
TEXT ·seekString(SB), NOSPLIT, $0-48
	MOVQ s_base+0(FP), SI
	MOVQ from+16(FP), DX
	MOVQ to+24(FP), BX
	MOVQ t+32(FP), R9
	LEAQ ret+40(FP), R8
	JMP  seek<>(SB)

// func seekBytes(s []byte, from, to int, t *classes) int
TEXT ·seekBytes(SB), NOSPLIT, $0-56
	MOVQ s_base+0(FP), SI
	MOVQ from+24(FP), DX
	MOVQ to+32(FP), BX
	MOVQ t+40(FP), R9
	LEAQ ret+48(FP), R8
	JMP  seek<>(SB)

// KINDS leaves in v what upper and lower have in common for each byte of it. Y5 is lost.
#define KINDS(upper, lower, v) \
	VPSRLW  $4, v, Y5        \
	VPAND   Y7, v, v         \
	VPAND   Y7, Y5, Y5       \
	VPSHUFB v, lower, v      \
	VPSHUFB Y5, upper, Y5    \
	VPAND   Y5, v, v

// seek is both: SI is the text, DX from, BX to, R9 the tables, R8 where the result goes.
TEXT seek<>(SB), NOSPLIT, $0-0
	VBROADCASTI128 (R9), Y8
	VBROADCASTI128 16(R9), Y9
	VBROADCASTI128 32(R9), Y10
	VBROADCASTI128 48(R9), Y11
	VBROADCASTI128 64(R9), Y12
	VBROADCASTI128 80(R9), Y13
	VBROADCASTI128 96(R9), Y14
	VBROADCASTI128 112(R9), Y15
	VPBROADCASTB   NIBBLE, Y7
	VPXOR          Y6, Y6, Y6
	SUBQ           $64, BX
	CMPQ           DX, BX
	JGT            sought

look:
	LEAQ    (SI)(DX*1), DI
	VMOVDQU (DI), Y0
	VMOVDQU 32(DI), Y1
	KINDS(Y10, Y11, Y0)
	KINDS(Y10, Y11, Y1)
	VPOR    Y0, Y1, Y2
	VPTEST  Y2, Y2
	JNZ     around

further:
	ADDQ $64, DX
	CMPQ DX, BX
	JLE  look
	LEAQ 64(BX), AX
	CMPQ DX, AX
	JGE  sought
	MOVQ BX, DX     // the last block overlaps the one before
	JMP  look

around:
	VMOVDQU   -1(DI), Y2
	VMOVDQU   31(DI), Y3
	KINDS(Y8, Y9, Y2)
	KINDS(Y8, Y9, Y3)
	VPAND     Y2, Y0, Y0
	VPAND     Y3, Y1, Y1
	VMOVDQU   1(DI), Y2
	VMOVDQU   33(DI), Y3
	KINDS(Y12, Y13, Y2)
	KINDS(Y12, Y13, Y3)
	VPAND     Y2, Y0, Y0
	VPAND     Y3, Y1, Y1
	VMOVDQU   2(DI), Y2
	VMOVDQU   34(DI), Y3
	KINDS(Y14, Y15, Y2)
	KINDS(Y14, Y15, Y3)
	VPAND     Y2, Y0, Y0
	VPAND     Y3, Y1, Y1
	VPCMPEQB  Y6, Y0, Y0
	VPCMPEQB  Y6, Y1, Y1
	VPMOVMSKB Y0, AX
	VPMOVMSKB Y1, CX
	SHLQ      $32, CX
	ORQ       CX, AX
	NOTQ      AX
	TESTQ     AX, AX
	JZ        further
	BSFQ      AX, AX
	ADDQ      AX, DX

sought:
	VZEROUPPER
	MOVQ DX, (R8)
	RET
