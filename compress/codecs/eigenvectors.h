// Eigenvectors of a symmetric matrix, computed in fp64, with the same bits on every machine.
#pragma once

#include <vector>

namespace thinwire {

// Eigenvalues and their eigenvectors.
struct Eigenvectors {
  std::vector<double> values;   // n, descending
  std::vector<double> vectors;  // [n, n], orthonormal rows, in the order of their values
};

// Returns the eigenvectors of `matrix` ([n, n], finite), of which only the lower triangle is read.
// Householder reflections make it tridiagonal; implicit QR steps with Wilkinson's shift follow
// (Golub and Van Loan, Matrix Computations, sections 8.3.1 and 8.3.5). Takes about 9 n^3 additions
// and multiplications.
Eigenvectors EigenvectorsOf(std::vector<double> matrix, int n);

}  // namespace thinwire
