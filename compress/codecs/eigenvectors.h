// The eigenvectors of a symmetric matrix, in fp64 and the same bits on every machine.
#pragma once

#include <vector>

namespace thinwire {

struct Eigenvectors {
  std::vector<double> values;   // n, descending
  std::vector<double> vectors;  // [n, n], orthonormal rows, in the order of their values
};

// `matrix`: [n, n], finite, of which the lower triangle counts. Householder's reflections to a
// tridiagonal matrix, then implicit QR steps with Wilkinson's shift (Golub and Van Loan, Matrix
// Computations, sections 8.3.1 and 8.3.5): some 9 n^3 additions and multiplications.
Eigenvectors EigenvectorsOf(std::vector<double> matrix, int n);

}  // namespace thinwire
