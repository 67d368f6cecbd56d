/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Letters between service and progress, and how a reader that sleeps is woken. Any thread. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_MAIL_H
#define BTL_OPENIB_MAIL_H

#include "types/btl_openib_types.h"

void ofo_mailbox_init(ofo_mailbox_t *box);
void ofo_mailbox_forget_spares(ofo_mailbox_t *box); /* the box is not used any more */
ofo_mail_t *ofo_mailbox_take(ofo_mailbox_t *box);   /* all letters, which the caller frees, or NULL */
/* Queue a letter and wake the reader; the caller never waits. Pointers may be NULL where the kind of letter allows it. */
void ofo_tell_service(ofo_endpoint_t *ep, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps);
void ofo_tell_progress(ofo_module_t *module, ofo_mail_kind_t kind, ofo_endpoint_t *ep, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps);
/* Ends the sleep of the module's service thread. */
void ofo_service_wake(ofo_module_t *module);
/* Wakes progress if it sleeps, because it has mail. Any thread. */
void ofo_sleep_end(void);

#endif /* BTL_OPENIB_MAIL_H */
