/* The program that sweep compiles when no -src is given: some arithmetic, some branches, one result on stdout. */
#include <stdio.h>

enum { N = 256, LEN = 100000, TERMS = 2000000 };

static double a[N][N], b[N][N], c[N][N];
static unsigned v[LEN];

/* Small integers in doubles: exact whatever the order of the additions, so vectorising changes nothing. */
static double matmul(void)
{
	double trace = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = (i * 7 + j) % 13;
			b[i][j] = (i + j * 5) % 11;
		}
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				c[i][j] += a[i][k] * b[k][j];
	for (int i = 0; i < N; i++)
		trace += c[i][i];
	return trace;
}

static void sift(unsigned *p, int root, int n)
{
	for (int child; (child = 2 * root + 1) < n; root = child) {
		if (child + 1 < n && p[child] < p[child + 1])
			child++;
		if (p[root] >= p[child])
			return;
		unsigned t = p[root];
		p[root] = p[child];
		p[child] = t;
	}
}

/* Heap sort of noise: branches that cannot be predicted. */
static unsigned sort(void)
{
	unsigned x = 2463534242u, sum = 0;
	for (int i = 0; i < LEN; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		v[i] = x;
	}
	for (int i = LEN / 2 - 1; i >= 0; i--)
		sift(v, i, LEN);
	for (int n = LEN - 1; n > 0; n--) {
		unsigned t = v[0];
		v[0] = v[n];
		v[n] = t;
		sift(v, 0, n);
	}
	for (int i = 0; i < LEN; i++)
		sum = sum * 31 + v[i];
	return sum;
}

/* A sum that rounds: a compiler that reorders it (-ffast-math) gets another result, and sweep must notice. */
static double harmonic(void)
{
	double sum = 0;
	for (int i = 1; i <= TERMS; i++)
		sum += 1.0 / i;
	return sum;
}

int main(void)
{
	printf("%.17g %u %.17g\n", matmul(), sort(), harmonic());
	return 0;
}
