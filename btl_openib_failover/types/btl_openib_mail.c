/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Letters between service and progress are queued and taken here, and a reader that sleeps is woken. The reader knows what a letter
 * asks for. See DESIGN.txt 15.1.
 */
#include "types/btl_openib_mail.h"

#include "bfo_assert.h"
#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"

#include <stdlib.h>
#include <unistd.h>

enum { SPARES = 32 };

/* Lock: that of the box, once it is in use. */
static void fill_up(ofo_mailbox_t *box)
{
    while (SPARES > box->spares) {
        ofo_mail_t *mail = calloc(1, sizeof(*mail));

        if (NULL == mail) {
            break;
        }
        mail->next = box->spare;
        box->spare = mail;
        ++box->spares;
    }
}

void ofo_mailbox_init(ofo_mailbox_t *box)
{
    pthread_mutex_init(&box->lock, NULL);
    box->first = NULL;
    box->last = &box->first;
    box->count = 0;
    box->spare = NULL;
    box->spares = 0;
    fill_up(box);
}

void ofo_mailbox_forget_spares(ofo_mailbox_t *box)
{
    while (NULL != box->spare) {
        ofo_mail_t *mail = box->spare;

        box->spare = mail->next;
        free(mail);
    }
    box->spares = 0;
}

ofo_mail_t *ofo_mailbox_take(ofo_mailbox_t *box)
{
    ofo_mail_t *first;

    pthread_mutex_lock(&box->lock);
    first = box->first;
    BFO_ASSERT((NULL == first) == (0 == box->count));
    BFO_ASSERT(NULL == *box->last);
    box->first = NULL;
    box->last = &box->first;
    OFO_STORE(box->count, 0);
    pthread_mutex_unlock(&box->lock);
    return first;
}

static void mailbox_put(ofo_mailbox_t *box, ofo_mail_t *mail)
{
    mail->next = NULL;
    mail->posted_at = ofo_now_ms();
    pthread_mutex_lock(&box->lock);
    BFO_ASSERT(NULL == *box->last && (box->last == &box->first) == (NULL == box->first));
    *box->last = mail;
    box->last = &mail->next;
    OFO_STORE(box->count, box->count + 1);
    pthread_mutex_unlock(&box->lock);
}

/* Nobody repeats most letters: a rail whose UP is lost would never be used. Therefore a short time without memory must lose none. */
static ofo_mail_t *empty_mail(ofo_mailbox_t *box)
{
    ofo_mail_t *mail = calloc(1, sizeof(*mail));

    pthread_mutex_lock(&box->lock);
    if (NULL != mail) {
        fill_up(box);
    } else if (NULL != box->spare) {
        mail = box->spare;
        box->spare = mail->next;
        --box->spares;
    }
    pthread_mutex_unlock(&box->lock);
    return mail;
}

static ofo_mail_t *mail_new(ofo_mailbox_t *box, ofo_mail_kind_t kind, ofo_endpoint_t *ep, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    ofo_mail_t *mail = empty_mail(box);

    if (NULL == mail) {
        return NULL;
    }
    mail->kind = kind;
    mail->ep = ep;
    mail->gen = gen;
    mail->qps = qps;
    if (NULL != ctl) {
        mail->ctl = *ctl;
    }
    return mail;
}

void ofo_service_wake(ofo_module_t *module)
{
    uint64_t one = 1;
    ssize_t rc = write(module->wake_fd, &one, sizeof(one));

    (void) rc; /* a full counter wakes as well */
}

/* Its barrier pairs with the one in sleep_until_woken() of _sleep.c: either this thread sees the sleeper, or the sleeper sees the letter. */
void ofo_sleep_end(void)
{
    uint64_t one = 1;

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (0 < __atomic_load_n(&OFO.asleep, __ATOMIC_RELAXED)) {
        ssize_t rc = write(OFO.wake_fd, &one, sizeof(one));
        (void) rc; /* a full counter wakes as well */
    }
}

void ofo_tell_service(ofo_endpoint_t *ep, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    ofo_mail_t *mail = mail_new(&ep->module->service_inbox, kind, ep, gen, ctl, qps);

    BFO_ASSERT(OFO_MAIL_UP > kind);
    if (NULL != mail) {
        mailbox_put(&ep->module->service_inbox, mail);
        ofo_service_wake(ep->module);
    }
}

void ofo_tell_progress(ofo_module_t *module, ofo_mail_kind_t kind, ofo_endpoint_t *ep, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    ofo_mail_t *mail = mail_new(&module->inbox, kind, ep, gen, ctl, qps);

    BFO_ASSERT(OFO_MAIL_UP <= kind || OFO_MAIL_RING == kind);
    if (NULL != mail) {
        mailbox_put(&module->inbox, mail);
        ofo_sleep_end();
    }
}
