// The operators of densities and the distributions they compute, for the tables of every device.
#pragma once

#include "symbind/backend/densities.h"
#include "symbind/ops/random_pdf.h"

namespace symbind::densities {

// Calls add.operator()<P, Distribution>() for each; Math is that of densities.h. The Dirichlet distribution, whose
// samples are vectors, has kernels of its own.
template <class Math, class Add>
void for_each(const Add& add) {
  add.template operator()<RandomPdfUniform, Uniform<Math>>();
  add.template operator()<RandomPdfNormal, Normal<Math>>();
  add.template operator()<RandomPdfGamma, Gamma<Math>>();
  add.template operator()<RandomPdfExponential, Exponential<Math>>();
  add.template operator()<RandomPdfPoisson, Poisson<Math>>();
  add.template operator()<RandomPdfNegativeBinomial, NegativeBinomial<Math>>();
  add.template operator()<RandomPdfGeneralizedNegativeBinomial, GeneralizedNegativeBinomial<Math>>();
}

}  // namespace symbind::densities
