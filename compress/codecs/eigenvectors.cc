#include "compress/codecs/eigenvectors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace thinwire {
namespace {

// Matrix that is being diagonalised. Rows of `q` become its eigenvectors.
struct Work {
  int n;
  std::vector<double> a;                 // [n, n]; below the tridiagonal part, the reflections
  std::vector<double> diagonal, beside;  // beside[i] couples i and i + 1
  std::vector<double> q;                 // [n, n]

  double* row_of_a(int i) { return a.data() + static_cast<size_t>(i) * n; }
  double* row_of_q(int i) { return q.data() + static_cast<size_t>(i) * n; }
};

// Finds the reflection I - 2 v v^T, |v| = 1, that maps `x`, n elements, to its first coordinate,
// and returns the value there. Writes v to x; zeros if there is nothing to do.
double Reflect(double* x, int n) {
  double rest = 0;
  for (int i = 1; i < n; ++i) rest += x[i] * x[i];
  const double first = x[0];
  if (rest == 0) {
    std::fill_n(x, n, 0.0);
    return first;
  }
  const double length = std::sqrt(first * first + rest);
  const double left = first > 0 ? -length : length;
  x[0] = first - left;
  const double norm = std::sqrt(x[0] * x[0] + rest);
  for (int i = 0; i < n; ++i) x[i] /= norm;
  return left;
}

// Computes A <- H A H for the lower triangle of rows and columns [first, n), with H = I - 2 v v^T.
// This is A - v w^T - w v^T with w = 2 (A v - (v^T A v) v). `w` is scratch memory.
void ReflectBothSides(Work* work, int first, const double* v, double* w) {
  const int m = work->n - first;
  std::fill_n(w, m, 0.0);
  for (int i = 0; i < m; ++i) {
    const double* const row = work->row_of_a(first + i) + first;
    double sum = row[i] * v[i];
    for (int j = 0; j < i; ++j) {
      sum += row[j] * v[j];
      w[j] += row[j] * v[i];
    }
    w[i] += sum;
  }
  double along = 0;
  for (int i = 0; i < m; ++i) along += v[i] * w[i];
  for (int i = 0; i < m; ++i) w[i] = 2 * (w[i] - along * v[i]);
  for (int i = 0; i < m; ++i) {
    double* const row = work->row_of_a(first + i) + first;
    for (int j = 0; j <= i; ++j) row[j] -= v[i] * w[j] + w[i] * v[j];
  }
}

// Makes the matrix tridiagonal, one column after the other. Keeps reflection k in row k of `q`.
void MakeTridiagonal(Work* work) {
  const int n = work->n;
  std::vector<double> w(n);
  for (int k = 0; k < n; ++k) {
    work->diagonal[k] = work->row_of_a(k)[k];
    const int m = n - k - 1;
    if (m == 0) break;
    double* const v = work->row_of_q(k) + k + 1;
    for (int i = 0; i < m; ++i) v[i] = work->row_of_a(k + 1 + i)[k];
    work->beside[k] = Reflect(v, m);
    ReflectBothSides(work, k + 1, v, w.data());
  }
}

// Replaces the rows of q by those of H_(n-2) ... H_0, whose transpose turns the tridiagonal
// matrix's eigenvectors back. It starts with the last reflection, so each acts on later rows and
// columns only.
void MultiplyReflections(Work* work) {
  const int n = work->n;
  std::vector<double> v(n);
  for (int k = n - 1; k >= 0; --k) {
    const int first = k + 1, m = n - first;
    double* const row = work->row_of_q(k);
    std::copy_n(row + first, m, v.data());
    std::fill_n(row, n, 0.0);
    row[k] = 1;
    // The product so far, times H from the right: each row loses twice its component along v.
    for (int i = first; i < n; ++i) {
      double* const of_q = work->row_of_q(i) + first;
      double along = 0;
      for (int j = 0; j < m; ++j) along += of_q[j] * v[j];
      for (int j = 0; j < m; ++j) of_q[j] -= 2 * along * v[j];
    }
  }
}

// Rotates rows i and i + 1 of q.
void Turn(Work* work, int i, double c, double s) {
  double* const a = work->row_of_q(i);
  double* const b = work->row_of_q(i + 1);
  for (int k = 0; k < work->n; ++k) {
    const double x = a[k], y = b[k];
    a[k] = c * x - s * y;
    b[k] = s * x + c * y;
  }
}

// Does one implicit QR step with Wilkinson's shift on [first, last]: a rotation of each pair of
// neighbouring rows in turn chases the entry beside the tridiagonal down and out.
void Step(Work* work, int first, int last) {
  std::vector<double>&d = work->diagonal, &e = work->beside;
  const double half = (d[last - 1] - d[last]) / 2, coupling = e[last - 1];
  const double root = std::sqrt(half * half + coupling * coupling);
  const double shift = d[last] - coupling * coupling / (half + (half < 0 ? -root : root));
  double x = d[first] - shift, z = e[first];
  for (int k = first; k < last; ++k) {
    const double length = std::sqrt(x * x + z * z);
    const double c = length == 0 ? 1 : x / length, s = length == 0 ? 0 : -z / length;
    if (k > first) e[k - 1] = length;
    const double a = d[k], b = d[k + 1], between = e[k];
    d[k] = c * c * a - 2 * c * s * between + s * s * b;
    d[k + 1] = s * s * a + 2 * c * s * between + c * c * b;
    e[k] = c * s * (a - b) + (c * c - s * s) * between;
    if (k + 1 < last) {
      x = e[k];
      z = -s * e[k + 1];
      e[k + 1] *= c;
    }
    Turn(work, k, c, s);
  }
}

// Makes the matrix diagonal. Entries beside the diagonal that are negligible count as zero and
// split the matrix; QR steps work on its last part until that is diagonal.
void MakeDiagonal(Work* work) {
  constexpr double kNothing = 0x1p-52;
  constexpr int kStepsOfOne = 60;
  std::vector<double>&d = work->diagonal, &e = work->beside;
  int last = work->n - 1;
  for (int steps = kStepsOfOne * work->n; last > 0 && steps > 0; --steps) {
    for (int i = 0; i < last; ++i) {
      if (std::fabs(e[i]) <= kNothing * (std::fabs(d[i]) + std::fabs(d[i + 1]))) e[i] = 0;
    }
    while (last > 0 && e[last - 1] == 0) --last;
    if (last == 0) return;
    int first = last - 1;
    while (first > 0 && e[first - 1] != 0) --first;
    Step(work, first, last);
  }
}

}  // namespace

Eigenvectors EigenvectorsOf(std::vector<double> matrix, int n) {
  Work work{n, std::move(matrix), std::vector<double>(n), std::vector<double>(n),
            std::vector<double>(static_cast<size_t>(n) * n)};
  MakeTridiagonal(&work);
  MultiplyReflections(&work);
  MakeDiagonal(&work);
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return work.diagonal[a] > work.diagonal[b]; });
  Eigenvectors result;
  for (const int i : order) {
    result.values.push_back(work.diagonal[i]);
    result.vectors.insert(result.vectors.end(), work.row_of_q(i), work.row_of_q(i) + n);
  }
  return result;
}

}  // namespace thinwire
