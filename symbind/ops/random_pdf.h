// Densities of the distributions that samplers draw from, at given samples.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct RandomPdf {
  bool is_log = false;  // the logarithm of the density
};
struct RandomPdfUniform : RandomPdf {};
struct RandomPdfNormal : RandomPdf {};
struct RandomPdfGamma : RandomPdf {};
struct RandomPdfExponential : RandomPdf {};
struct RandomPdfPoisson : RandomPdf {};
struct RandomPdfNegativeBinomial : RandomPdf {};
struct RandomPdfGeneralizedNegativeBinomial : RandomPdf {};
struct RandomPdfDirichlet : RandomPdf {};
inline constexpr Builder<RandomPdfUniform> random_pdf_uniform;
inline constexpr Builder<RandomPdfNormal> random_pdf_normal;
inline constexpr Builder<RandomPdfGamma> random_pdf_gamma;
inline constexpr Builder<RandomPdfExponential> random_pdf_exponential;
inline constexpr Builder<RandomPdfPoisson> random_pdf_poisson;
inline constexpr Builder<RandomPdfNegativeBinomial> random_pdf_negative_binomial;
inline constexpr Builder<RandomPdfGeneralizedNegativeBinomial> random_pdf_generalized_negative_binomial;
inline constexpr Builder<RandomPdfDirichlet> random_pdf_dirichlet;

// Gradients: (out_grad, the operator's inputs) → the gradient of each input.
template <class Pdf>
struct PdfGrad : Pdf {};

}  // namespace symbind
